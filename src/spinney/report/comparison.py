"""What a comparison found: the numbers, and how they are shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from spinney.report.families import Task

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["Comparison", "Estimate", "ModelResult"]


@dataclass(frozen=True)
class Estimate:
    """A cross-validated number.

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
    """How one model did.

    Attributes
    ----------
    name, title : str
        The model, as typed and in words.
    estimate : Estimate or None
        The measure of the comparison (see `Comparison.metric`); None if the model failed.
    r2 : Estimate or None
        R² for regression with the default measure, else None.
    fit_seconds, predict_seconds : float
        Means over the folds: a fit on the training rows of a fold, a prediction of its test rows
        (NaN if the model failed).
    size : int or None
        Bytes of the fitted model, pickled.
    failure : str or None
        Why the model failed, in one line.
    skipped : str or None
        Why the model was not run to the end, in one line.
    behind : Estimate or None
        How much worse than the best it is, fold by fold (None for the best itself); its `se` allows
        for what the folds' training rows have in common.
    p_value : float or None
        Of a paired test that the model is as good as the best.
    tied : bool
        Whether it cannot be told apart from the best: `p_value` above 0.05.
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

    `print` shows it as a table, a notebook as HTML, and rich in colours.

    Attributes
    ----------
    task : {"classification", "regression"}
        What was compared.
    metric : str
        The measure: "error" (the share of rows put in a wrong class), "rmse" (root mean squared
        error) or the name of the scorer that was asked for.
    greater_is_better : bool
        Whether a larger measure is better; true for scorers only.
    n_rows, n_features, n_folds : int
        The size of the table and the number of folds.
    stratified : bool
        Whether every fold has the classes in about the same proportions.
    results : list of ModelResult
        Best first; models that failed come last.
    notes : list of str
        What a reader should know about the data.
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

    @property
    def best(self) -> ModelResult | None:
        """The model that did best, or None if every one failed."""
        first = self.results[0]
        return None if first.failure else first

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, numbers and text, ready for JSON."""
        best = self.best
        content = asdict(self)
        content["best"] = best.name if best else None
        # JSON has no NaN.
        return {key: _without_nan(value) for key, value in content.items()}

    def __str__(self) -> str:
        """Return a table in plain text."""
        header, rows = self._header(), list(self._rows())
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        lines = [self._summary(), ""]
        for row in [header, *rows]:
            numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            lines.append("  ".join([row[0].ljust(widths[0]), *numbers]).rstrip())
        lines += self._failures()
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
        remarks = [*self._failures(), *(f"Note: {note}" for note in self.notes)]
        return (
            f"<p>{escape(self._summary())}</p>"
            f"<table><thead>{line(self._header(), 'th')}</thead><tbody>{body}</tbody></table>"
            + "".join(f"<p>{escape(remark)}</p>" for remark in remarks)
        )

    def __rich__(self) -> Group:
        """Return what rich shows: the same table, in colours."""
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for number, title in enumerate(self._header()):
            table.add_column(title, justify="right" if number else "left", no_wrap=True)
        for row, result in zip(self._rows(), self.results, strict=True):
            style = "red" if result.failure else "bold green" if result is self.best else ""
            table.add_row(*(Text(cell) for cell in row), style=style)
        failures = [Text(line, style="red") for line in self._failures()]
        notes = [Text(f"Note: {note}", style="yellow") for note in self.notes]
        return Group(Text(self._summary()), table, *failures, *notes)

    def _summary(self) -> str:
        folds = f"{self.n_folds} {'stratified ' if self.stratified else ''}folds"
        columns = f"{self.n_features:,} column{'' if self.n_features == 1 else 's'}"
        return f"{self.task} · {self.n_rows:,} rows × {columns} · {folds}"

    def _header(self) -> tuple[str, ...]:
        titles = {"error": "error %", "rmse": "RMSE"}
        measures = [f"{titles.get(self.metric, self.metric)} ± se"]
        if self._has_r2():
            measures.append("R²")
        return ("  model", *measures, "fit s", "predict s")

    def _rows(self) -> Iterator[tuple[str, ...]]:
        scale = 100.0 if self.metric == "error" else 1.0
        spreads = [result.estimate.se * scale for result in self.results if result.estimate]
        decimals = _decimals(spreads)
        for result in self.results:
            mark = "* " if result is self.best else "  "
            if result.estimate is None:
                blanks = ("–",) * (len(self._header()) - 2)
                yield (mark + result.name, "failed", *blanks)
                continue
            mean, se = result.estimate.mean * scale, result.estimate.se * scale
            measures = [f"{mean:.{decimals}f} ± {se:.{decimals}f}"]
            if math.isnan(se):
                measures = [f"{mean:.{decimals}f}"]
            if self._has_r2():
                measures.append(f"{result.r2.mean:.3f}" if result.r2 else "")
            times = (_seconds(result.fit_seconds), _seconds(result.predict_seconds))
            yield (mark + result.name, *measures, *times)

    def _failures(self) -> list[str]:
        return [f"{r.name} failed: {r.failure}" for r in self.results if r.failure]

    def _has_r2(self) -> bool:
        return any(result.r2 for result in self.results)


def _decimals(spreads: list[float]) -> int:
    """Return how many decimals show two digits of the first standard error that is not 0."""
    spread = next((spread for spread in spreads if spread > 0), 0.01)
    return min(6, max(0, 1 - math.floor(math.log10(spread))))


def _seconds(seconds: float) -> str:
    return "<0.001" if seconds < 0.0005 else f"{seconds:.3f}"


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return value
