"""Rendering of the page from its templates."""

from __future__ import annotations

from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from spinney.comparison.comparison import Comparison
from spinney.io.atomic_write import replaced_file
from spinney.report.evidence import Evidence
from spinney.report.page import numbers
from spinney.report.page.charts.svg import plain
from spinney.report.page.numbers import measure_format
from spinney.report.page.profile import class_rows, column_row
from spinney.report.page.ranking import make_ranking
from spinney.report.page.sections import make_sections
from spinney.report.page.summary import best_of, summary_text
from spinney.report.page.words import clip, listing, model_name, name_html

__all__ = ["render_page", "write_page"]

SHOWN_COLUMNS, SHOWN_CLASSES = 30, 12  # others are in a closed <details>


def render_page(comparison: Comparison, evidence: Evidence) -> str:
    """Return the page as HTML that needs no other file, no network and no script.

    Parameters
    ----------
    comparison : Comparison
        The ranking.
    evidence : Evidence
        All other sections. Missing parts have no section.

    Returns
    -------
    page : str
        The same arguments always give the same text.

    Examples
    --------
    >>> import spinney
    >>> from spinney.report.evidence import Evidence, TargetProfile
    >>> X, y = [[number] for number in range(40)], [number // 20 for number in range(40)]
    >>> comparison = spinney.compare(X, y, models=["baseline", "decision_tree"], cv=2)
    >>> target = TargetProfile("half", "classification", ["0", "1"], [20, 20])
    >>> page = render_page(comparison, Evidence("numbers: half", target, []))
    >>> page[:15], "decision_tree" in page
    ('<!doctype html>', True)
    """
    measure = measure_format(comparison)
    best = best_of(comparison)
    context: dict[str, Any] = {
        "comparison": comparison,
        "evidence": evidence,
        "measure": measure,
        "best": best,
        "summary": summary_text(comparison, measure),
        "ranking": make_ranking(comparison, measure),
        "classes": class_rows(evidence.target),
        "shown_classes": SHOWN_CLASSES,
        "columns": [column_row(column, comparison.n_rows) for column in evidence.columns],
        "shown_columns": SHOWN_COLUMNS,
        "n_used": sum(column.used for column in evidence.columns),
        # `export_svg` escapes all text.
        "tree": Markup(evidence.tree_svg) if evidence.tree_svg else None,
        **make_sections(evidence, measure),
    }
    page: str = _environment().get_template("page.html").render(context)
    return page


def write_page(comparison: Comparison, evidence: Evidence, path: str | PathLike[str]) -> None:
    """Write the page to a file; if anything fails, the file is unchanged.

    Parameters
    ----------
    comparison : Comparison
        The ranking.
    evidence : Evidence
        All other sections.
    path : str or path-like
        The file; it is replaced if it exists.
    """
    page = render_page(comparison, evidence)
    with replaced_file(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("spinney.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        plain=plain,
        share=numbers.share,
        value=numbers.value,
        name=model_name,
        word=name_html,
        clip=clip,
        listing=listing,
    )
    return environment
