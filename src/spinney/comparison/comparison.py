"""The result of a comparison, and its output as text, HTML and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.comparison.measure import MEASURES
from spinney.comparison.outcomes import EndedBy
from spinney.data.task import Task

if TYPE_CHECKING:
    from rich.console import Group

    from spinney.comparison.comparison_data import ComparisonData

__all__ = ["Comparison", "Estimate", "ModelResult"]


@dataclass(frozen=True)
class Estimate:
    """A cross-validated score.

    Attributes
    ----------
    mean : float
        Mean over the folds.
    se : float
        Standard error of the mean, from the spread over the folds (NaN for a single fold).
    folds : tuple of float
        The value in each fold.
    """

    mean: float
    se: float
    folds: tuple[float, ...]

    @classmethod
    def from_folds(cls, folds: list[float]) -> Estimate:
        """Average the values of the folds."""
        n_folds = len(folds)
        mean = math.fsum(folds) / n_folds
        if n_folds == 1:
            return cls(mean, math.nan, tuple(folds))
        variance = math.fsum((value - mean) ** 2 for value in folds) / (n_folds - 1)
        return cls(mean, math.sqrt(variance / n_folds), tuple(folds))


@dataclass(frozen=True)
class ModelResult:
    """The result of one model.

    Attributes
    ----------
    name, title : str
        The model's name, and a short description.
    estimate : Estimate or None
        The score of the model (see `Comparison.metric`); None if it failed.
    r2 : Estimate or None
        R² for regression with the default measure, else None.
    fit_seconds, predict_seconds : float
        Means over the folds: a fit on the training rows of a fold, a prediction of its test rows
        (NaN if the model failed).
    size : int or None
        Bytes of the fitted model, pickled.
    failure : str or None
        Why the model failed, in one line; a `spinney.comparison.outcomes.Failure` if the
        comparison ran in this process.
    skipped : str or None
        Why the model was not run to the end, in one line; a `Skip`, likewise.
    behind : Estimate or None
        The difference to the best model (None for the best itself); its `se` is corrected for the
        overlap of the folds' training rows.
    p_value : float or None
        p-value of a paired test of no difference to the best model.
    tied : bool
        Whether it does not differ significantly from the best: `p_value` above 0.05.
    """

    name: str
    title: str
    estimate: Estimate | None = None
    r2: Estimate | None = None
    fit_seconds: float = math.nan
    predict_seconds: float = math.nan
    size: int | None = None
    failure: str | None = None
    skipped: str | None = None
    behind: Estimate | None = None
    p_value: float | None = None
    tied: bool = False


@dataclass(frozen=True)
class Comparison:
    """The models of a comparison, best first.

    `print` shows a table, a notebook HTML, and rich colours.

    Attributes
    ----------
    task : {"classification", "regression"}
        The task.
    metric : str
        The metric: "error" (the share of wrong predictions), "rmse" (root mean squared
        error) or the one given as `scoring`.
    greater_is_better : bool
        Whether a larger metric is better.
    n_rows, n_features, n_folds : int
        The size of the table and the number of folds that all models ran on.
    stratified : bool
        Whether every fold has the classes in about the same proportions.
    results : list of ModelResult
        Best first; models that failed or were skipped come last.
    notes : list of str
        Remarks on the data and on the run; `Note` objects if the comparison ran in this process.
    folds : str
        The kind of folds, as printed.
    n_folds_requested : int or None
        The requested number of folds, if a time limit or Ctrl-C ended the comparison early.
    simpler : str or None
        The simplest model within one standard error of the best, if simpler than the best.
    compared : ComparisonData or None
        The data, the models and their predictions; None after reading from a file.
    ended_by : EndedBy or None
        The reason for an end before the last fold.
    """

    task: Task
    metric: str
    greater_is_better: bool
    n_rows: int
    n_features: int
    n_folds: int
    stratified: bool
    results: list[ModelResult]
    notes: list[str]
    folds: str = ""
    n_folds_requested: int | None = None
    simpler: str | None = None
    compared: ComparisonData | None = field(default=None, repr=False, compare=False)
    ended_by: EndedBy | None = field(default=None, repr=False, compare=False)

    @property
    def best(self) -> ModelResult | None:
        """The best model, or None if all failed."""
        ranked = [result for result in self.results[:1] if result.estimate is not None]
        return ranked[0] if ranked else None

    @property
    def table(self) -> list[dict[str, Any]]:
        """The ranking as plain rows, for ``pandas.DataFrame(result.table)``.

        Each has ``model``, the measure under its name (such as ``error``), ``se`` (its standard
        error), ``fit_seconds``, ``predict_seconds``, ``size``, ``tied`` and ``p_value``; in
        regression also ``r2``. A model that failed or was skipped has NaN, and ``failure`` is the
        reason.

        Examples
        --------
        >>> import spinney
        >>> X, y = spinney.datasets.load_spam(return_X_y=True)
        >>> row = spinney.compare(X, y, models=["baseline"], cv=5).table[0]
        >>> row["model"], round(row["error"], 3)
        ('baseline', 0.394)
        """
        return [self._row(result) for result in self.results]

    def _row(self, result: ModelResult) -> dict[str, Any]:
        estimate = result.estimate
        row = {
            "model": result.name,
            self.metric: math.nan if estimate is None else estimate.mean,
            "se": math.nan if estimate is None else estimate.se,
        }
        if self._has_r2():
            row["r2"] = result.r2.mean if result.r2 else math.nan
        return {
            **row,
            "fit_seconds": result.fit_seconds,
            "predict_seconds": result.predict_seconds,
            "size": result.size,
            "tied": result.tied,
            "p_value": result.p_value,
            "failure": result.failure or result.skipped,
        }

    def __getitem__(self, name: str) -> ModelResult:
        """Return the result of the model of that name."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"{name!r}; expected one of: {', '.join(r.name for r in self.results)}")

    def make(self, name: str | None = None) -> Any:
        """Return an unfitted model; the best one if no name is given."""
        return self._compared().make(self._name(name))

    def fit(self, name: str | None = None) -> Any:
        """Return a model fitted on all rows; the best one if no name is given."""
        compared = self._compared()
        return compared.make(self._name(name)).fit(compared.X, compared.y)

    def predictions(self, name: str | None = None) -> Any:
        """Return out-of-fold predictions of a model.

        Rows in no test fold (the first ones of folds in time) have NaN, or None.
        """
        return self._compared().predictions(self._name(name))

    def explain(
        self, name: str | None = None, X: Any = None, *, max_rows: int = 500, **options: Any
    ) -> Any:
        """Return Shapley values of the predictions of a model fitted on all rows.

        Parameters
        ----------
        name : str or None, default=None
            The model; None is the best one.
        X : table or None, default=None
            The rows to explain; rows of the comparison if None.
        max_rows : int, default=500
            The largest number of the comparison's rows to explain; they are evenly spaced.
        **options
            Further arguments of `spinney.inspection.explain`.

        Returns
        -------
        Explanation
            The result of `spinney.inspection.explain`; exact for trees and their ensembles, sampled
            for models that transform the table first.
        """
        # Imported late, for start-up time.
        from spinney.data.rows import take_rows
        from spinney.inspection import explain

        if max_rows < 1:
            raise ValueError(f"max_rows: expected a positive number, got {max_rows}")
        model = self.fit(name)
        if X is None:
            compared = self._compared()
            n_rows = len(compared.y)
            rows = np.unique(np.linspace(0, n_rows - 1, min(max_rows, n_rows)).astype(np.intp))
            X = take_rows(compared.X, rows)
        return explain(model, X, **options)

    def plot(self, ax: Any = None) -> Any:
        """Draw the ranking; see `spinney.plot.comparison`."""
        # Imported late, as plots need matplotlib, an optional dependency.
        from spinney import plot

        return plot.comparison(self, ax=ax)

    def report(
        self, path: str | Path, *, title: str = "A table", target: str = "y", seconds: float = 60.0
    ) -> Path:
        """Write the report, a self-contained HTML page.

        Parameters
        ----------
        path : str or Path
            The file to write.
        title, target : str
            The names of the table and of the target.
        seconds : float, default=60
            The time limit; parts that take longer (learning curves, importances) are listed as
            not shown.

        Returns
        -------
        Path
            The file.
        """
        # Imported late, as `report` is a layer above this package.
        from spinney.comparison.recipe import Origin
        from spinney.report.build_evidence import build_evidence
        from spinney.report.page import write_page

        folder = Path(path).parent
        if not folder.is_dir():  # fail before the work
            raise FileNotFoundError(f"cannot write to {path}: there is no folder {folder}")
        evidence = build_evidence(self, origin=Origin(title, target), seconds=seconds)
        write_page(self, evidence, path)
        return Path(path)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as dictionaries, lists, numbers and text, ready for JSON."""
        best = self.best
        content = {
            part.name: getattr(self, part.name)
            for part in fields(self)
            if part.name not in ("compared", "ended_by")
        }
        content["results"] = [asdict(result) for result in self.results]
        content["best"] = best.name if best else None
        # JSON has no NaN.
        return {key: _without_nan(value) for key, value in content.items()}

    def __str__(self) -> str:
        """Return a table in plain text."""
        header, rows = self._header(), list(self._rows())
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        lines = [self.summary, ""]
        for row in [header, *rows]:
            numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            lines.append("  ".join([row[0].ljust(widths[0]), *numbers]).rstrip())
        lines += [*self.findings, *self._failures()]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""

        def line(cells: tuple[str, ...], tag: str) -> str:
            first, *numbers = (escape(cell) for cell in cells)
            style = 'style="text-align:right"'
            return (
                f'<tr><{tag} style="text-align:left">{first}</{tag}>'
                + "".join(f"<{tag} {style}>{cell}</{tag}>" for cell in numbers)
                + "</tr>"
            )

        body = "".join(line(row, "td") for row in self._rows())
        remarks = [
            *self.findings,
            *self._failures(),
            *(f"Note: {note}" for note in self.notes),
        ]
        return (
            f"<p>{escape(self.summary)}</p>"
            f"<table><thead>{line(self._header(), 'th')}</thead><tbody>{body}</tbody></table>"
            + "".join(f"<p>{escape(remark)}</p>" for remark in remarks)
        )

    def __rich__(self) -> Group:
        """Return what rich shows: the same table, in colours."""
        # Imported late, for start-up time.
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for number, title in enumerate(self._header()):
            table.add_column(title, justify="right" if number else "left", no_wrap=True)
        for row, result in zip(self._rows(), self.results, strict=True):
            style = "bold green" if result is self.best else "green" if result.tied else ""
            if result.estimate is None:
                style = "red" if result.failure else "dim"
            table.add_row(*(Text(cell) for cell in row), style=style)
        findings = [Text(line) for line in self.findings]
        failures = [Text(line, style="red") for line in self._failures()]
        notes = [Text(f"Note: {note}", style="yellow") for note in self.notes]
        return Group(Text(self.summary), table, *findings, *failures, *notes)

    @property
    def summary(self) -> str:
        """Task, size of the table and number of folds, in one line."""
        requested = f" of {self.n_folds_requested}" if self.n_folds_requested else ""
        kind = self.folds or ("stratified folds" if self.stratified else "folds")
        columns = f"{self.n_features:,} column{'' if self.n_features == 1 else 's'}"
        return f"{self.task} · {self.n_rows:,} rows × {columns} · {self.n_folds}{requested} {kind}"

    @property
    def findings(self) -> list[str]:
        """Remarks on the ranking: ties with the best model, and a simpler model."""
        remarks = []
        if any(result.tied for result in self.results):
            remarks.append(
                "≈ not significantly different from the best (paired test over the folds, p > 0.05)"
            )
        if self.simpler is not None:
            remarks.append(
                f"Simpler is better: {self.simpler} is within one standard error of the best."
            )
        return remarks

    @property
    def metric_title(self) -> str:
        """The metric's title as a column header."""
        return next((m.title for m in MEASURES if m.name == self.metric), self.metric)

    @property
    def percent(self) -> bool:
        """Whether the metric is shown in percent."""
        return any(m.name == self.metric and m.percent for m in MEASURES)

    def _compared(self) -> ComparisonData:
        if self.compared is None:
            raise ValueError("this comparison has no data and no models: it comes from a file")
        return self.compared

    def _name(self, name: str | None) -> str:
        if name is not None:
            return self[name].name
        if self.best is None:
            raise ValueError("there is no best model: all models failed")
        return self.best.name

    def _header(self) -> tuple[str, ...]:
        measures = [f"{self.metric_title} ± se"]
        if self._has_r2():
            measures.append("R²")
        return ("  model", *measures, "fit s", "predict s", "size")

    def _rows(self) -> Iterator[tuple[str, ...]]:
        scale = 100.0 if self.percent else 1.0
        spreads = [result.estimate.se * scale for result in self.results if result.estimate]
        decimals = _decimals(spreads)
        for result in self.results:
            mark = "* " if result is self.best else "≈ " if result.tied else "  "
            if result.estimate is None:
                blanks = ("–",) * (len(self._header()) - 2)
                yield (mark + result.name, "failed" if result.failure else "skipped", *blanks)
                continue
            mean, se = result.estimate.mean * scale, result.estimate.se * scale
            measures = [f"{mean:.{decimals}f} ± {se:.{decimals}f}"]
            if math.isnan(se):
                measures = [f"{mean:.{decimals}f}"]
            if self._has_r2():
                measures.append(f"{result.r2.mean:.3f}" if result.r2 else "")
            times = (_seconds(result.fit_seconds), _seconds(result.predict_seconds))
            yield (mark + result.name, *measures, *times, _size(result.size))

    def _failures(self) -> list[str]:
        failures = [f"{r.name} failed: {r.failure}" for r in self.results if r.failure]
        skipped = [f"{r.name} skipped: {r.skipped}" for r in self.results if r.skipped]
        return failures + skipped

    def _has_r2(self) -> bool:
        return self.metric != "r2" and any(result.r2 for result in self.results)


def _decimals(spreads: list[float]) -> int:
    """Return the decimals for two digits of the first standard error above 0."""
    spread = next((spread for spread in spreads if spread > 1e-9), 0.01)
    return min(6, max(0, 1 - math.floor(math.log10(spread))))


def _seconds(seconds: float) -> str:
    return "<0.001" if seconds < 0.0005 else f"{seconds:.3f}"


def _size(size: int | None) -> str:
    if size is None:
        return "–"
    for unit, limit in (("B", 1e3), ("kB", 1e6), ("MB", 1e9)):
        if size < limit:
            number = size / limit * 1e3
            return f"{number:.0f} {unit}" if number >= 10 or unit == "B" else f"{number:.1f} {unit}"
    return f"{size / 1e9:.1f} GB"


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return value
