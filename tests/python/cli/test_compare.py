"""``spinney compare``: input, output, reports and errors."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney
from spinney.cli import main
from spinney.comparison.families import FAMILIES

RNG = np.random.default_rng(0)
AGE = RNG.integers(18, 80, size=60)
CITY = RNG.choice(["Bath", "York", "Ely"], size=60)
BOUGHT = np.where((AGE > 50) ^ (CITY == "Ely"), "yes", "no")


class Output(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Output]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run the command in this process, at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)  # a report goes to the current folder

    def call(*arguments: object) -> Output:
        monkeypatch.setattr(sys, "argv", ["spinney", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return Output(int(end.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Write a CSV file: a numeric column with missing values, a text column, a target."""
    ages = [str(age) if row % 7 else "" for row, age in enumerate(AGE)]
    rows = [",".join(row) for row in zip(ages, CITY, BOUGHT, strict=True)]
    path = tmp_path / "shop.csv"
    path.write_text("\n".join(["age,city,bought", *rows]) + "\n", encoding="utf-8")
    return path


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"spinney {spinney.__version__}\n"
    assert "compare" in run("--help").out
    assert "decision_tree_pruned" in run("compare", "--help").out


def test_bundled_spam(run: Run) -> None:
    result = run("compare", "--cv", 2, "--models", "baseline,decision_tree")
    assert result.code == 0
    assert result.err == ""  # no progress bar without a terminal
    assert "4,601 rows × 57 columns · 2 stratified folds" in result.out
    assert "* decision_tree" in result.out
    assert "spinney compare DATA.csv --target COLUMN" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_bundled_spam_with_folds_of_the_demo(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []
    original = spinney.compare

    def compare(*data: Any, **options: Any) -> Any:
        calls.append(options)
        return original(*data, **options)

    monkeypatch.setattr(sys.modules["spinney.comparison.compare"], "compare", compare)
    monkeypatch.setattr("spinney.cli._compare.perf_counter", lambda: 0.0)  # an exact time limit
    short_run, note = (
        ("--models", "baseline,decision_tree"),
        "Note: 5 folds, to keep this demo short; ",
    )
    demo = run("compare", *short_run, "--out", tmp_path)
    assert demo.code == 0
    assert "4,601 rows × 57 columns · 5 stratified folds" in demo.out
    # On one line of the output, and in the report.
    assert f"{note}full version: spinney compare --cv 10" in demo.out.splitlines()
    assert "full version: spinney compare --cv 10" in (tmp_path / "report.html").read_text("utf-8")
    assert "ended by" not in demo.out
    limited = run(
        "compare", *short_run, "--no-report", "--cv", 3, "--time-limit", 60, "--max-rows", 900
    )
    assert "900 rows × 57 columns · 3 stratified folds" in limited.out
    full = run("compare", *short_run, "--no-report", "--cv", 10)
    assert "10 stratified folds" in full.out
    assert note not in limited.out + full.out
    assert [(one["cv"], one["time_limit"], one["max_rows"]) for one in calls] == [
        (5, 225.0, None),  # three quarters of the limit; the rest is for the report
        (3, 45.0, 900),
        (10, 225.0, None),
    ]
    assert calls[0]["models"] == ["baseline", "decision_tree"]


def test_csv(run: Run, shop: Path) -> None:
    result = run("compare", shop, "--target", "bought", "--cv", 3)
    assert result.code == 0
    assert "60 rows × 2 columns" in result.out
    assert "failed" not in result.out
    assert "* " in result.out
    assert "random_forest" in result.out
    assert "--drop COL drops a column" in result.out


def test_json(run: Run, shop: Path) -> None:
    result = run("compare", shop, "--target", "bought", "--cv", 3, "--json", "--jobs", 1)
    content = json.loads(result.out)
    assert content["data"] == "shop.csv: bought"
    assert content["best"] in {result["name"] for result in content["results"]} - {"baseline"}
    expected = [family for family in FAMILIES if "classification" in family.tasks]
    assert len(content["results"]) == len(expected)


def test_regression_and_drop(run: Run, shop: Path) -> None:
    result = run("compare", shop, "--target", "age", "--drop", "city", "--task", "regression")
    assert result.code == 0
    assert "51 rows × 1 column " in result.out
    assert "RMSE" in result.out
    assert "dropped 9 rows without a value of 'age'" in result.out


@pytest.mark.parametrize("extension", ["parquet", "arrow", "feather", "stream.arrow"])
def test_binary_formats(run: Run, tmp_path: Path, extension: str) -> None:
    table = pa.table({"age": AGE, "city": pa.array(CITY).dictionary_encode(), "bought": BOUGHT})
    path = tmp_path / f"shop.{extension}"
    if extension == "parquet":
        pq.write_table(table, path)
    else:
        opener = pa.ipc.new_stream if extension == "stream.arrow" else pa.ipc.new_file
        with opener(path, table.schema) as writer:
            writer.write_table(table)
    result = run("compare", path, "--target", "bought", "--cv", 3)
    assert result.code == 0
    assert "60 rows × 2 columns" in result.out
    assert "failed" not in result.out


def test_errors_are_one_line(run: Run, shop: Path, tmp_path: Path) -> None:
    def file(name: str, content: str) -> Path:
        (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path / name

    target = ("--target", "bought")
    cases: list[tuple[list[object], str]] = [
        (["nowhere.csv", *target], "no such file: nowhere.csv"),
        ([tmp_path, *target], "is a folder"),
        ([file("t.xlsx", "PK\x03\x04"), *target], "is a zip archive"),
        ([file("t.parquet", "no Parquet"), *target], "is not a Parquet file"),
        ([file("empty.csv", ""), *target], "is empty"),
        ([file("header.csv", "age,bought\n"), *target], "has no rows"),
        ([file("gone.csv", "age,bought\n1,\n2,NA\n"), *target], "'bought' has no value in any row"),
        ([file("only.csv", "bought\nyes\nno\n"), *target], "no column is left to learn from"),
        ([file("one.csv", "age,bought\n1,yes\n2,yes\n"), *target], "one class only"),
        ([shop], "--target must name the column to predict; shop.csv has: age, city, bought"),
        ([shop, "--target", "Bougt"], "no column 'Bougt' in shop.csv; did you mean 'bought'?"),
        ([shop, "--target", "q"], "no column 'q' in shop.csv; it has: age, city, bought"),
        ([shop, *target, "--drop", "town"], "no column 'town'"),
        ([shop, *target, "--drop", "bought"], "cannot be dropped or get a kind"),
        ([shop, *target, "--models", "forest"], "models has no 'forest'"),
        ([shop, *target, "--jobs", 0], "--jobs must be"),
        ([shop, *target, "--cv", 1], "spinney: --cv must be between 2"),
        ([shop, *target, "--metric", "rmse"], "spinney: --metric rmse is for regression"),
        ([shop, *target, "--task", "regression"], "'bought' must hold numbers"),
        (["--target", "bought"], "--target, --drop and similar options need DATA"),
    ]
    for arguments, message in cases:
        code, out, err = run("compare", *arguments)
        assert code == 2, arguments
        assert out == "", arguments
        assert err.startswith("spinney: "), arguments
        assert message in err, arguments
        assert err.count("\n") == 1, arguments


def test_module_and_exit_status(tmp_path: Path) -> None:
    """Run ``python -m spinney`` in a separate process; expect no traceback."""
    command = [sys.executable, "-m", "spinney", "compare", str(tmp_path / "none.csv")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == f"spinney: no such file: {tmp_path / 'none.csv'}\n"


# Reports, kinds, folds and notes


def test_report_and_result(run: Run, shop: Path, tmp_path: Path) -> None:
    result = run(
        "compare", shop, "--target", "bought", "--cv", 3, "--out", tmp_path / "deep" / "er"
    )
    page = tmp_path / "deep" / "er" / "report.html"
    assert f"Report: {page}" in result.out.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    assert "shop.csv: bought" in text
    assert f"spinney.io.read_training_table({str(shop)!r}" in html.unescape(text)
    content = json.loads((page.parent / "result.json").read_text(encoding="utf-8"))
    assert content["settings"]["seed"] == "0"
    assert content["best"] == content["results"][0]["name"]


def test_folder_of_the_report(run: Run, shop: Path, tmp_path: Path) -> None:
    options = ("--target", "bought", "--cv", 3, "--models", "baseline")
    assert "Report: spinney-report/report.html" in run("compare", shop, *options).out
    shutil.rmtree(tmp_path / "spinney-report")
    assert "Report" not in run("compare", shop, *options, "--no-report").out
    assert json.loads(run("compare", shop, *options, "--json").out)["report"] is None
    assert not (tmp_path / "spinney-report").exists()
    content = json.loads(run("compare", shop, *options, "--json", "--out", tmp_path / "here").out)
    assert Path(content["report"]).is_file()
    assert (
        run("compare", shop, *options, "--out", shop).err
        == f"spinney: --out {shop} is a file; name a folder\n"
    )
    assert (
        "cannot be given together"
        in run("compare", shop, *options, "--out", "a", "--no-report").err
    )
    assert "--time-limit must be" in run("compare", shop, *options, "--time-limit", -1).err


def test_repeated_runs_give_the_same_numbers(run: Run, shop: Path) -> None:
    command = ("compare", shop, "--target", "bought", "--cv", 3, "--json")
    first, second = (json.loads(run(*command, "--jobs", jobs).out) for jobs in (1, 2))
    assert [r["estimate"] for r in first["results"]] == [r["estimate"] for r in second["results"]]


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Write a table of patients with several visits; the target depends on the patient."""
    random = np.random.default_rng(0)
    patient = np.repeat(np.arange(30), 8)
    table = pa.table(
        {
            "visit": pa.array(np.arange(240)).cast(pa.timestamp("s")),
            "patient": [f"p{number:02}" for number in patient],
            "height": random.normal(170, 10, 30)[patient],
            "other": random.normal(size=240),
            "ill": random.integers(0, 2, 30)[patient],
            "note": [f"came for the {number}th time, no change" for number in range(240)],
        }
    )
    path = tmp_path / "visits.parquet"
    pq.write_table(table, path)
    return path


def test_kinds_are_shown_and_overruled(run: Run, visits: Path) -> None:
    options = ("--target", "ill", "--cv", 3, "--models", "baseline", "--no-report")
    out = run("compare", visits, *options).out
    assert "date: visit" in out
    assert "category: patient" in out
    assert "number: height, other" in out
    assert "text (unused): note" in out
    changed = run(
        "compare", visits, *options, "--kind", "note=category", "--kind", "visit=dropped"
    ).out
    assert "category: patient, note" in changed
    assert "dropped (unused): visit" in changed
    assert "COL=KIND" in run("compare", visits, *options, "--kind", "note").err
    assert "'note'" in run("compare", visits, *options, "--kind", "note=number").err
    assert "colour" in run("compare", visits, *options, "--kind", "note=colour").err


def test_groups_estimate_the_error_on_new_groups(run: Run, visits: Path) -> None:
    """The height identifies a patient, so a tree recognizes patients of its training rows only."""
    options = ("--target", "ill", "--cv", 5, "--models", "decision_tree", "--json")
    by_chance = json.loads(run("compare", visits, *options, "--drop", "patient").out)
    in_groups = json.loads(run("compare", visits, *options, "--group", "patient").out)
    assert by_chance["results"][0]["estimate"]["mean"] < 0.02
    assert in_groups["results"][0]["estimate"]["mean"] > 0.2
    assert in_groups["folds"] == "folds of whole groups"
    assert in_groups["n_features"] == 3


def test_folds_in_time(run: Run, visits: Path) -> None:
    options = ("--target", "ill", "--cv", 4, "--models", "decision_tree", "--json")
    content = json.loads(run("compare", visits, *options, "--time", "visit").out)
    assert content["folds"] == "folds, each after its training rows"
    assert "is the target" in run("compare", visits, *options, "--time", "ill").err


def test_metric_option(run: Run, shop: Path) -> None:
    options = ("--target", "bought", "--cv", 3, "--models", "random_forest,baseline", "--no-report")
    out = run("compare", shop, *options, "--metric", "roc_auc").out
    assert "ROC AUC ± se" in out
    assert "* random_forest" in out
    out = run("compare", shop, *options, "--metric", "recall").out
    assert "Note: recall is that of class 'yes'" in out
    assert "failed" not in out
    assert "did you mean 'roc_auc'?" in run("compare", shop, *options, "--metric", "roc_au").err


def test_standard_input(shop: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spinney", "compare", "-", "--target", "bought", "--cv", "3"]
    command += ["--models", "baseline", "--json"]
    with shop.open("rb") as file:
        ended = subprocess.run(command, stdin=file, capture_output=True, cwd=tmp_path, check=True)
    assert json.loads(ended.stdout)["n_rows"] == 60


def test_columns_that_are_dropped_automatically(run: Run, tmp_path: Path) -> None:
    frame = {"a": range(60), "who": [row % 9 for row in range(60)], "lists": [[1, 2]] * 60}
    pq.write_table(pa.table(frame | {"y": [row % 2 for row in range(60)]}), tmp_path / "t.parquet")
    options = ("--cv", 2, "--models", "baseline, decision_tree,", "--no-report", "--json")
    ended = run("compare", tmp_path / "t.parquet", "--target", "y", "--group", "who", *options)
    notes = json.loads(ended.out)["notes"]
    dropped = [note for note in notes if note.startswith("unused")]
    assert dropped == ["unused 'lists': holds values of type list<element: int64>"]


def test_leaks_are_reported_once(run: Run, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    paid = random.integers(0, 2, 200)
    columns = {"age": random.normal(size=200), "a\nb": paid * 7, "copy": paid + 1, "paid": paid}
    pq.write_table(pa.table(columns), tmp_path / "leak.parquet")
    options = ("--target", "paid", "--cv", 3, "--models", "decision_tree", "--no-report")
    ended = run("compare", tmp_path / "leak.parquet", *options)
    assert ended.out.count("leak suspected") == 1
    assert "number: age, a b, copy" in ended.out.splitlines()


def test_small_tables_get_fewer_folds(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tennis.csv"
    assert run("datasets", "play_tennis", "-o", path).code == 0
    result = run("compare", path, "--target", "play", "--no-report")
    assert result.code == 0
    assert "14 rows × 4 columns · 9 stratified folds" in result.out


def test_column_that_leaks_the_target_is_noted(run: Run, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    paid = random.integers(0, 2, 200)
    table = pa.table({"age": random.normal(size=200), "receipt": paid * 7, "paid": paid})
    pq.write_table(table, tmp_path / "leak.parquet")
    options = ("--target", "paid", "--cv", 3, "--models", "decision_tree", "--no-report")
    assert (
        "Note: column 'receipt': leak suspected"
        in run("compare", tmp_path / "leak.parquet", *options).out
    )


def test_notes_on_unused_columns(run: Run, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {f"rate{k}": [f"0.{n + k}%" for n in range(90)] for k in range(7)}
    columns |= {"day": [f"{n % 12 + 1}/{n % 28 + 1}/{1900 + n}" for n in range(90)]}
    columns |= {f"same{k}": [k] * 90 for k in range(20)}
    columns |= {"age": random.normal(size=90), "y": random.integers(0, 2, 90)}
    pq.write_table(pa.table(columns), tmp_path / "rates.parquet")
    options = ("--target", "y", "--cv", 2, "--models", "baseline", "--no-report", "--json")
    ended = run("compare", tmp_path / "rates.parquet", *options)
    notes = json.loads(ended.out)["notes"]
    rates = "'rate0', 'rate1', 'rate2', 'rate3', 'rate4' and 2 more: "
    assert f"unused {rates}looks like numbers with units" in notes
    assert any(note.startswith(f"columns {rates}numbers with units: write") for note in notes)
    assert "unused 'day': looks like dates that are not written as 2024-12-31" in notes
    assert "14 more notes on columns are not shown" in notes


def test_infinite_value_is_treated_as_missing(run: Run, tmp_path: Path) -> None:
    rows = [f"{row % 7},{'inf' if row == 5 else row / 7},{row % 2}" for row in range(60)]
    path = tmp_path / "infinite.csv"
    path.write_text("\n".join(["a,b,y", *rows]), encoding="utf-8")
    options = ("--cv", 3, "--models", "baseline,decision_tree", "--no-report")
    ended = run("compare", path, "--target", "y", *options)
    assert ended.code == 0
    assert "failed" not in ended.out
    assert "column 'b': 1 infinite value is treated as missing" in ended.out
    model = tmp_path / "model"
    assert run("fit", path, "--target", "y", "--model", "random_forest", "-o", model).code == 0
    assert run("predict", model, path).code == 0


BAD = {
    "one row": "a,y\n1,2\n",
    "own classes": "a,y\n" + "".join(f"{row},c{row}\n" for row in range(40)),
    "10,000 classes": "a,y\n" + "".join(f"{row % 17},c{row % 10_000}\n" for row in range(20_000)),
    "cut off": "a,b,y\n1,2,x\n3,4,z\n5,",
    "open quote": 'a,y\n1,"x\n2,b\n',
    "infinite": "a,y\n" + "".join(f"{row},{'inf' if row == 3 else row / 7}\n" for row in range(60)),
    "broken UTF-8": b"a,y\n1,\xff\xfe\n2,b\n3,\xc3\x28\n",
    "empty columns": ",".join(f"c{n}" for n in range(3000)) + ",y\n" + ("," * 3000 + "a\n") * 3,
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_invalid_data_end_with_a_one_line_error(
    run: Run, tmp_path: Path, content: str | bytes
) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("compare", path, "--target", "y")
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("spinney: ")
    assert result.err.count("\n") == 1


def test_recipe_of_a_report_runs(run: Run, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lines = ["when;who;x;y"]
    for row in range(80):
        lines.append(f"2024-01-{row % 28 + 1:02};p{row % 9};{random.normal():.3f};{row % 2}")
    path = tmp_path / "visits.txt"
    path.write_text("\n".join(lines).replace("p", "ä"), encoding="latin-1")
    reading = ("--delimiter", ";", "--encoding", "latin-1", "--models", "baseline,decision_tree")
    for option, column in (("--group", "who"), ("--time", "when")):
        out = tmp_path / option[2:]
        command = ("compare", path, "--target", "y", option, column, *reading, "--out", out)
        assert run(*command, "--cv", 4).code == 0
        content = json.loads((out / "result.json").read_text(encoding="utf-8"))
        page = (out / "report.html").read_text(encoding="utf-8")
        code = html.unescape(re.sub("<[^>]+>", "", page[page.index("import spinney") :]))
        names: dict[str, Any] = {}
        exec(code[: code.index("# on all rows")], names)
        estimates = [r.estimate for r in names["result"].results]
        assert [e.mean for e in estimates] == [r["estimate"]["mean"] for r in content["results"]]


def test_groups_and_moments_decide_on_the_folds(run: Run, visits: Path) -> None:
    options = ("--target", "ill", "--models", "baseline", "--json", "--kind", "visit=dropped")
    assert json.loads(run("compare", visits, *options, "--group", "patient").out)["n_folds"] == 10
    table = pq.read_table(visits)
    years = pa.array(np.repeat([2020, 2021, 2022, 2023], 60))
    pq.write_table(table.append_column("year", years), visits)
    assert json.loads(run("compare", visits, *options, "--time", "year").out)["n_folds"] == 3
    text = run("compare", visits, *options, "--time", "patient")
    assert "does not hold times: expected dates written as 2024-12-31, or numbers" in text.err


def test_ambiguous_task_is_printed(run: Run, tmp_path: Path) -> None:
    path, options = tmp_path / "rows.csv", ("--models", "decision_tree", "--cv", 3)
    rows = [f"{i % 2},{i % 2},{'no' if i % 2 else 'yes'}" for i in range(30)]
    path.write_text("\n".join(["a,digit,name", *rows]))
    digit = run("compare", path, "--target", "digit", *options, "--drop", "name")
    name = run("compare", path, "--target", "name", *options, "--drop", "digit")
    assert "The task for 'digit' is classification; --task regression changes it." in digit.out
    assert "The task for" not in name.out
    assert "--drop COL drops a column" in name.out


@pytest.mark.parametrize("stray", ["oops", "1,234", "$1000.50"])
def test_stray_value_of_the_target_is_in_the_error(run: Run, tmp_path: Path, stray: str) -> None:
    rows = [f'{row},"{row}.25"' for row in range(80)]
    rows[3] = "3,"  # dropped; line numbers still refer to the file
    rows[40] = f'40,"{stray}"'
    path = tmp_path / "prices.csv"
    path.write_text("\n".join(["x,price", *rows]), encoding="utf-8")
    ended = run("compare", path, "--target", "price")
    assert ended.code == 2
    assert f"read as classes, as 1 value is not a number (the first is {stray!r} in line 42)" in (
        ended.err
    )
    ended = run("compare", path, "--target", "price", "--task", "regression")
    assert f"1 value is not a number, the first is {stray!r} in line 42" in ended.err
    ended = run("fit", path, "--target", "price", "--model", "ridge", "-o", tmp_path / "m")
    assert "was read as classes" in ended.err


@pytest.mark.parametrize("shape", ["{:.2f} €", "${:,.2f}", "{:.2f}%"])
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_numeric_target_with_units_is_an_error(
    command: str, shape: str, run: Run, tmp_path: Path
) -> None:
    rows = [f'{row},"{shape.format(row % 97 * 14.25)}"' for row in range(300)]
    path = tmp_path / "prices.csv"
    path.write_text("\n".join(["x,price", *rows]), encoding="utf-8")
    options = {
        "fit": ("--model", "decision_tree", "-o", tmp_path / "m"),
        "compare": ("--models", "decision_tree", "--cv", 2, "--no-report"),
    }[command]
    ended = run(command, path, "--target", "price", *options)
    assert ended.code == 2
    assert "300 values are not numbers" in ended.err
    assert f"(the first is {shape.format(0)!r} in line 2)" in ended.err
    assert "its 97 different values are numbers, apart from units, signs and sep" in ended.err
    assert "write numbers plainly, such as 1234.5, or set --task classification" in ended.err
    ended = run(command, path, "--target", "price", "--task", "classification", *options)
    assert ended.code == 0
    assert " ".join(ended.out.split()).count("97 classes in 300 rows, 3.1 rows per class on") == 1


def test_ambiguous_target_is_an_error(run: Run, tmp_path: Path) -> None:
    rows = [f"{row},{row % 2},{row % 3}" for row in range(30)]
    path = tmp_path / "twice.csv"
    path.write_text("\n".join(["a,y,y", *rows]), encoding="utf-8")
    options = ("--target", "y", "--cv", 2, "--models", "baseline", "--no-report")
    ended = run("compare", path, *options)
    assert "target 'y' is ambiguous: twice.csv has 2 columns of that name, called 'y', 'y_2'" in (
        ended.err
    )
    assert run("compare", path, *options, "--drop", "y_2").code == 0


def test_file_without_a_header(run: Run, tmp_path: Path) -> None:
    rows = [f"{row * 2},{row % 7},{'pq'[row % 2]}" for row in range(30)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    options = ("--target", "c3", "--no-header")
    ended = run("compare", path, *options, "--cv", 2, "--models", "baseline", "--no-report")
    assert "30 rows × 2 columns" in ended.out
    model = tmp_path / "m"
    assert run("fit", path, *options, "--model", "decision_tree", "-o", model, "-q").code == 0
    out = tmp_path / "out.csv"
    assert run("predict", model, path, "--no-header", "-o", out).code == 0
    assert out.read_text().splitlines() == ["prediction", *(row[-1] for row in rows)]


def test_folder_that_cannot_be_created_is_an_error(run: Run, shop: Path) -> None:
    result = run("compare", shop, "--target", "bought", "--out", shop / "sub", "--json")
    assert result.code == 2
    assert result.out == ""
    assert f"--out {shop / 'sub'}: Not a directory" in result.err


def test_errors_name_options(run: Run, shop: Path) -> None:
    options = ("--target", "bought", "--cv", 2, "--no-report", "-q")
    cases: list[tuple[tuple[object, ...], str]] = [
        (("--models", "ridge"), "--models: 'ridge' does not support classification"),
        (("--metric", "mae"), "--metric mae is for regression, and this is classification"),
    ]
    for arguments, message in cases:
        ended = run("compare", shop, *options, *arguments)
        assert ended.code == 2
        assert ended.err.startswith(f"spinney: {message}"), ended.err


def test_notes_name_options(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "first.csv"
    path.write_text(
        "a,5.1,y\n" + "\n".join(f"{row},{row % 7},{'np'[row % 2]}" for row in range(40))
    )
    ended = run("compare", path, "--target", "y", "--cv", 2, "--models", "baseline", "--no-report")
    assert "if it is a row, set --no-header" in " ".join(ended.out.split())
    assert "header=False" not in ended.out
