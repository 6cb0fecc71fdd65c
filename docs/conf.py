"""How Sphinx makes the site; see CONTRIBUTING.md for the command."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "_extensions"))

import spinney

project = "Spinney"
author = "The Spinney developers"
copyright = author  # the name that Sphinx asks for
version = release = spinney.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "numpydoc",
    "api_pages",
]
exclude_patterns = ["_build", "_templates", "_extensions", "guide/figures"]
templates_path = ["_templates"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

# `name` is a link where there is something of that name, and plain code elsewhere.
default_role = "py:obj"
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # numpydoc sections have the types
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False  # autodoc shows them, with their docstrings
numpydoc_class_members_toctree = False

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"Spinney {release}"
html_static_path = ["_static"]
html_css_files = ["spinney.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5a94",
        "color-brand-content": "#1f5a94",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8fb6dc",
        "color-brand-content": "#8fb6dc",
    },
}
