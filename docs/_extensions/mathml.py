"""Formulas as MathML, which browsers draw themselves: no script from elsewhere."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

_log = logging.getLogger(__name__)


def visit_inline(translator: Any, node: nodes.Element) -> None:
    """Write a formula within a line."""
    translator.body.append(_formula(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    """Write a formula on lines of its own."""
    translator.body.append(f'<div class="math">{_formula(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _formula(node: nodes.Element, as_block: bool) -> str:
    text = node.astext()
    # TeX reads "frac12" as one half; docutils takes twelve over what comes next.
    if re.search(r"frac\s*\d", text):
        _log.warning(r"formula: expected braces, as in \frac{1}{2}, got %s", text, location=node)
    try:
        return str(tex2mathml(text, as_block=as_block))
    except MathError as error:
        _log.warning("formula: %s in %s", error, text, location=node)
        return f"<code>{text}</code>"


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx, as ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
