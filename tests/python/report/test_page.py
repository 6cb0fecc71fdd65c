"""The page of a report: valid HTML, escaping, finite coordinates, reproducible, correct."""

from __future__ import annotations

import hashlib
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.comparison.comparison import Comparison, Estimate, ModelResult
from spinney.report.evidence import (
    ColumnImportances,
    ColumnProfile,
    ConfusionMatrix,
    Evidence,
    TargetProfile,
)
from spinney.report.page import render_page, write_page
from support.paths import TESTS
from support.report_makers import make_classification, make_regression
from support.report_samples import HOSTILE, SAMPLES

VOID = {"meta", "br", "hr", "img", "input", "link", "col", "base", "source"}
PAGES = {name: render_page(*make()) for name, make in SAMPLES.items()}


class Reader(HTMLParser):
    """Reads a page strictly: every element is closed, in order, and no id comes twice."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice: {names}"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        # The title of an SVG element is only a tooltip.
        if "style" not in self.open and not ("svg" in self.open and self.open[-1] == "title"):
            self.text += data

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        return [
            found
            for name, found in self.elements
            if name == tag and all(found.get(key) == value for key, value in attributes.items())
        ]


@pytest.fixture(scope="module", params=list(SAMPLES))
def page(request: pytest.FixtureRequest) -> str:
    return PAGES[request.param]


def sections(page: str) -> list[str]:
    return [section["id"] for section in Reader(page).all("section")]


# The page as a document


def test_page_is_well_formed(page: str) -> None:
    reader = Reader(page)
    assert page.startswith("<!doctype html>")
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    # Every entry of the contents leads somewhere, and every section is in the contents.
    links = [link["href"] for link in reader.all("a")]
    assert links == [f"#{section}" for section in sections(page)]


def test_page_needs_nothing_else(page: str) -> None:
    reader = Reader(page)
    outside = {"src", "srcset", "data", "action", "xlink:href", "poster", "formaction"}
    for tag, attributes in reader.elements:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed", "base", "image"}
        assert not outside & set(attributes), (tag, attributes)
        assert attributes.get("href", "#").startswith("#")
        assert not [name for name in attributes if name.startswith("on")]
        assert "url(" not in attributes.get("style", "")
    style = page.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_drawings_have_finite_coordinates(page: str) -> None:
    names = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "d", "viewbox"}
    for tag, attributes in Reader(page).elements:
        if tag in {"meta"}:
            continue
        for name in names & set(attributes):
            numbers = re.sub(r"[MLChCzv, -]", " ", attributes[name])
            assert all(math.isfinite(float(number)) for number in numbers.split()), attributes


def test_charts_have_accessible_names(page: str) -> None:
    for svg in Reader(page).all("svg"):
        assert svg.get("aria-hidden") == "true" or (svg["role"] == "img" and svg["aria-label"])


def test_page_is_the_same_each_time() -> None:
    for name in ("three_columns", "numbers", "hostile"):
        assert render_page(*SAMPLES[name]()) == PAGES[name]


def test_page_does_not_depend_on_hashes() -> None:
    code = (
        "from support.report_samples import SAMPLES; from spinney.report.page import render_page;"
        "import hashlib; page = render_page(*SAMPLES['three_columns']());"
        "print(hashlib.sha256(page.encode()).hexdigest())"
    )
    path = os.pathsep.join([str(TESTS), *sys.path])
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": path}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == hashlib.sha256(PAGES["three_columns"].encode()).hexdigest()


# Contents

EVERYWHERE = ["ranking", "data", "learning"]
AT_LAST = [
    *("importances", "dependence", "contributions", "tree"),
    *("predictions", "reproduce", "not-shown"),
]


def test_sections_of_classification() -> None:
    found = sections(PAGES["two_classes"])
    assert found == [*EVERYWHERE, "confusion", "calibration", "curves", *AT_LAST]


def test_sections_of_regression() -> None:
    assert sections(PAGES["numbers"]) == [*EVERYWHERE, "residuals", *AT_LAST]


def test_missing_evidence_has_no_section() -> None:
    assert sections(PAGES["bare"]) == ["ranking"]
    assert sections(PAGES["failed"]) == ["ranking", "data", "not-shown"]
    assert "all of it" in Reader(PAGES["failed"]).text


def test_folds_are_described_as_in_the_table() -> None:
    comparison, evidence = make_classification(3, 2)
    in_groups = replace(comparison, folds="folds of whole groups", n_folds_requested=12)
    page = " ".join(render_page(in_groups, evidence).split())
    assert f"· {comparison.n_folds} of 12 folds of whole groups</p>" in page


def test_code_is_shown_as_it_is() -> None:
    comparison, evidence = make_regression(2)
    code = "if a < b & c:\n    print('x')\n"
    text = Reader(render_page(comparison, replace(evidence, code=code))).text
    assert code in text


@pytest.mark.parametrize("n_columns", [1, 30, 31, 300])
def test_columns_are_folded_after_thirty(n_columns: int) -> None:
    page = render_page(*make_regression(n_columns))
    shown, _, folded = page.partition('<section id="data">')[2].partition("<details>")
    folded = folded.partition("</details>")[0]
    names = [f"column_{number}" for number in range(n_columns)]
    assert [name for name in names if f">{name}<" in shown] == names[:30]
    assert [name for name in names if f">{name}<" in folded] == names[30:]


def test_hostile_names_are_text() -> None:
    reader = Reader(PAGES["hostile"])
    tags = {tag for tag, _ in reader.elements}
    assert not tags & {"script", "img"}
    assert "<script>alert('x')</script>" in reader.text
    assert "{{ 7 * 7 }}{% raw %}" in reader.text
    assert "&amp; </style></svg>--><!--" in reader.text
    assert "(empty)" in reader.text
    assert "العمود الأول (سنة)" in reader.text
    # Truncated on the page, complete in the tooltip.
    assert "x" * 500 not in reader.text.replace(HOSTILE[0] + "\n" + HOSTILE[2], "")
    titles = [attributes["title"] for attributes in reader.all("bdi") if "title" in attributes]
    assert "x" * 500 in titles
    PAGES["hostile"].encode("utf-8")
    assert "\u202e" not in reader.text
    assert "\x00" not in reader.text


KNOWN = {tag for tag, _ in Reader(PAGES["two_classes"]).elements}


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(), max_size=90))
def test_any_text_is_text(text: str) -> None:
    comparison = Comparison("classification", "error", False, 9, 2, 3, True, [BEST], [text])
    target = TargetProfile(text, "classification", [text, "b"], [5, 4])
    columns = [ColumnProfile(text, "category", True, text, [text], common=[(text, 3)])]
    confusion = ConfusionMatrix(text, [text, "b"], [[4, 1], [2, 2]])
    importances = ColumnImportances(text, text, [text], [0.1], [0.01])
    evidence = Evidence(
        text, target, columns, confusion=confusion, importances=[importances], code=text,
        settings={text: text}, not_shown=[text],
    )  # fmt: skip
    page = render_page(comparison, evidence)
    page.encode("utf-8")
    assert {tag for tag, _ in Reader(page).elements} <= KNOWN


def test_failed_and_skipped_models_have_reasons() -> None:
    text = Reader(PAGES["two_classes"]).text
    assert "ValueError: class 'b' has one row only" in text
    assert "stopped after 600 seconds" in text
    assert "No model could be measured" in Reader(PAGES["failed"]).text


def test_page_without_any_result() -> None:
    comparison, evidence = make_classification(3, 2)
    text = Reader(render_page(replace(comparison, results=[]), evidence)).text
    assert "No model could be measured" in text


# The summary


def summary(results: list[ModelResult], simpler: str | None = None) -> str:
    comparison = Comparison("classification", "error", False, 100, 2, 10, True, results, [])
    if simpler:
        object.__setattr__(comparison, "simpler", simpler)
    evidence = Evidence("t", TargetProfile("y", "classification"), [])
    page = render_page(comparison, evidence)
    return Reader(page.split('<p class="summary">')[1].split("</p>")[0]).text


def model(
    name: str, mean: float, *, tied: bool = False, p_value: float | None = 0.001
) -> ModelResult:
    return ModelResult(name, name, Estimate(mean, 0.0015, (mean,)), tied=tied, p_value=p_value)


BEST = model("extra_trees", 0.0411, p_value=None)


def test_summary_names_the_tied() -> None:
    tied = [model("forest", 0.042, tied=True, p_value=0.3), model("boosting", 0.043, tied=True)]
    assert summary([BEST, *tied]) == (
        "extra_trees is best: error 4.11 % ± 0.15. "
        "forest and boosting are not significantly different from it."
    )
    assert summary([BEST, tied[0]]).endswith("forest is not significantly different from it.")
    many = [model(f"m{number}", 0.05, tied=True) for number in range(9)]
    assert "m0, m1, m2 and 6 more models are" in summary([BEST, *many])


def test_summary_when_one_is_significantly_better() -> None:
    text = summary([BEST, model("forest", 0.09), model("baseline", 0.394)])
    assert text == (
        "extra_trees is best: error 4.11 % ± 0.15. It is significantly better than every other "
        "model (p ≤ 0.05). Without any column, the error is 39.40 %."
    )


def test_summary_of_a_single_fold_has_no_significance() -> None:
    results = [
        ModelResult(name, name, Estimate(mean, math.nan, (mean,)))
        for name, mean in (("a", 0.1), ("b", 0.2))
    ]
    assert summary(results) == "a is best: error 10.00 %."


def test_summary_names_the_simpler() -> None:
    text = summary([BEST, model("pruned_tree", 0.042)], simpler="pruned_tree")
    assert "pruned_tree is simpler and within one standard error." in text
    assert "simpler" not in summary([BEST, model("pruned_tree", 0.042)], simpler="extra_trees")


def test_summary_when_no_model_beats_the_baseline() -> None:
    assert "This model uses no column: no other model is better." in summary(
        [model("baseline", 0.5), model("tree", 0.51)]
    )
    text = summary([BEST, model("baseline", 0.042, tied=True)])
    assert "baseline uses no column and is not significantly worse." in text


# Writing


def test_page_is_written(tmp_path: Path) -> None:
    sample = make_regression(2)
    write_page(*sample, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render_page(*sample)
    write_page(*make_regression(3), str(tmp_path / "report.html"))
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_failure_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(*arguments: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        write_page(*make_regression(2), path)
    assert path.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_missing_folder_raises(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "report.html"
    with pytest.raises(FileNotFoundError, match=f"cannot write to {re.escape(str(path))}"):
        write_page(*make_regression(2), path)
    with pytest.raises(
        FileNotFoundError, match=f"cannot write to {re.escape(str(path))}: there is"
    ):
        make_regression(2)[0].report(path)
