"""Calculation of all parts of a report within a time limit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from spinney.comparison.comparison import Comparison
from spinney.comparison.comparison_data import ComparisonData
from spinney.comparison.deadline import TimeUp, deadline
from spinney.comparison.families import select_families
from spinney.comparison.recipe import Origin, recipe, settings
from spinney.report.conformal_evidence import NoHeldOutRows, own_coverage, predicted_rows
from spinney.report.diagnostics import (
    calibration_curves,
    count_confusion,
    rate_curves,
    summarize_residuals,
)
from spinney.report.evidence import Evidence, LearningCurve, date_writer
from spinney.report.importances_and_dependence import (
    FittedOnFold,
    dependence_curves,
    measure_importances,
)
from spinney.report.learning import learning_seconds, measure_learning_curve
from spinney.report.profile import profile_columns, profile_target
from spinney.report.shap_contributions import contributions
from spinney.tree import export_svg

if TYPE_CHECKING:
    from spinney.io import ColumnKinds

__all__ = ["build_evidence"]

_MODELS = 3  # models in the diagnostics
_PROFILE_SECONDS = 10.0  # in addition to the time limit
_SHOWN_COLUMNS = 6
_SMALL_TREE = 20  # leaves: a larger tree is drawn to fewer levels


def build_evidence(
    comparison: Comparison,
    *,
    origin: Origin,
    kinds: ColumnKinds | None = None,
    frame: Any = None,
    row_numbers: Any = None,
    seconds: float = 60.0,
    on_step: Callable[[str], object] = lambda step: None,
) -> Evidence:
    """Calculate everything that a report shows beside the ranking.

    Parameters
    ----------
    comparison : Comparison
        The result of `spinney.compare`.
    origin : Origin
        The source of the table.
    kinds : ColumnKinds or None
        The kinds of all columns, including unused ones.
    frame : pyarrow.Table or None
        The table as it was read.
    row_numbers : array or None
        Row numbers in the file, if some of its rows were dropped.
    seconds : float
        The time limit; parts that do not fit into it are listed in `Evidence.not_shown`.
    on_step : callable
        Called with the name of each part before its calculation.

    Returns
    -------
    Evidence
    """
    compared = comparison.compared
    if compared is None:
        raise ValueError(
            "this comparison has no data for a report: it comes from a file or a pickle; call "
            "report() on the result of spinney.compare"
        )
    builder = _EvidenceBuilder(
        comparison, compared, origin, row_numbers=row_numbers, seconds=seconds, on_step=on_step
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the comparison has issued the warnings on all rows
        return builder.build(kinds, frame)


class _EvidenceBuilder:
    """Collects the parts of the evidence until the time limit `end`."""

    def __init__(
        self,
        comparison: Comparison,
        compared: ComparisonData,
        origin: Origin,
        *,
        row_numbers: Any,
        seconds: float,
        on_step: Callable[[str], object],
    ) -> None:
        self.comparison = comparison
        self.compared = compared
        self.origin = origin
        self.end = perf_counter() + seconds
        self.on_step = on_step
        self.row_numbers = row_numbers
        self.found: dict[str, Any] = {}
        self.not_shown: list[str] = []
        self.stopped = False

    def build(self, kinds: ColumnKinds | None, frame: Any) -> Evidence:
        compared, name = self.compared, self.origin.target
        target = profile_target(compared.y, self.comparison.task, name)
        self.end += _PROFILE_SECONDS  # the profile has its own time
        self.found["columns"] = []
        self._keep("columns", lambda: profile_columns(compared.X, kinds, frame))
        self.end -= _PROFILE_SECONDS
        best = self.comparison.best
        if best is not None:
            shown = self._shown_models()
            # The cheapest parts come first, so that a short limit skips as few as possible.
            self._diagnose(shown)
            self._tree()
            self._measure_importances(shown)
            self._learn(shown)
        return Evidence(
            title=f"{self.origin.title}: {name}",
            target=target,
            code=recipe(self.comparison, self.origin),
            settings=settings(self.comparison, self.origin),
            not_shown=self.not_shown,
            **self.found,
        )

    def _shown_models(self) -> list[str]:
        """Return the best model, the simplest within one standard error, and the next ones."""
        ranked = [r.name for r in self.comparison.results if r.estimate is not None]
        simpler = [self.comparison.simpler] if self.comparison.simpler else []
        return list(dict.fromkeys([ranked[0], *simpler, *ranked]))[:_MODELS]

    def _diagnose(self, shown: list[str]) -> None:
        compared, best = self.compared, shown[0]

        def curves() -> None:
            rocs, precisions = rate_curves(compared, shown)
            self.found.update(rocs=rocs, precision_recalls=precisions)

        if compared.classes is None:
            self._keep("residuals", lambda: summarize_residuals(compared, best))
        else:
            self._keep("confusion", lambda: count_confusion(compared, best))
            self._keep("calibrations", lambda: calibration_curves(compared, shown))
            self._do("ROC and precision–recall curves", curves)
        self._keep("predictions", lambda: predicted_rows(compared, best, numbers=self.row_numbers))
        if self.found.get("predictions") is None:
            self.not_shown.append(f"predictions with intervals: {best} has none here")

    def _tree(self) -> None:
        def draw() -> None:
            family = select_families(["decision_tree_pruned"], self.comparison.task)[0]
            maker = self.compared.makers.get(family.name)
            pruned = maker() if maker else family.make(self.comparison.task, 0, None)
            tree = pruned.fit(self.compared.X, self.compared.y).estimator_
            leaves, depth = int(tree.get_n_leaves()), int(tree.get_depth())
            drawn = 6 if leaves <= _SMALL_TREE else 4
            self.found["tree_svg"] = export_svg(tree, max_depth=drawn)
            text = f"{leaves:,} {'leaf' if leaves == 1 else 'leaves'}, depth {depth}"
            if depth > drawn:
                text += f" (the first {drawn} levels are drawn)"
            self.found["tree_text"] = text

        self._do("the pruned tree", draw)

    def _measure_importances(self, shown: list[str]) -> None:
        self.found["importances"], self.found["dependences"] = [], []
        best: list[FittedOnFold] = []

        def measure(name: str, models_left: int) -> None:
            fitted = FittedOnFold(self.compared, name)
            if name == shown[0]:
                best.append(fitted)
            found = measure_importances(fitted, self._left() / (2 * models_left))
            if found is None:
                raise TimeUp
            self.found["importances"].append(found)

        for index, name in enumerate(shown):
            first = self.compared.trials[name][0]
            seconds = first.fit_seconds if first.model is None else 0.0
            self._do(f"importances of {name}", partial(measure, name, len(shown) - index), seconds)
            if index == 0 and best:
                self._explain(best[0])

    def _explain(self, fitted: FittedOnFold) -> None:
        """Build dependence, contributions and the coverage of the model's own intervals."""
        numbers, name = self.row_numbers, fitted.name
        found = self.found["importances"]

        def depend() -> None:
            important = [
                column
                for column, mean in zip(found[0].columns, found[0].means, strict=True)
                if mean > 0
            ]
            self.found["dependences"] = dependence_curves(
                fitted, important[:_SHOWN_COLUMNS], self.origin.target
            )

        if found:
            self._do(f"dependence of {name} on its columns", depend)

        def contribute() -> None:
            writers = {column.name: date_writer(column) for column in self.found["columns"]}
            dates = {column: write for column, write in writers.items() if write is not None}
            seconds = self._left() / 4
            self.found["contributions"] = contributions(fitted, seconds, numbers, dates)

        own = f"own intervals or sets of {name}"

        def measure_coverage() -> None:
            try:
                self.found["own_coverage"] = own_coverage(fitted)
            except NoHeldOutRows:
                reason = "its fit held out no rows, or too few"
                self.not_shown.append(f"{own}: {reason}")

        if name != "baseline":  # the baseline uses no column
            self._do(f"contributions to predictions of {name}", contribute)
        self._do(own, measure_coverage)

    def _learn(self, shown: list[str]) -> None:
        curves: list[LearningCurve] = []
        self.found["learning_curves"] = curves

        def learn(name: str) -> None:
            curves.append(measure_learning_curve(self.compared, name))

        for name in shown:
            seconds = learning_seconds(self.compared, name)
            self._do(f"learning curve of {name}", partial(learn, name), seconds)

    def _left(self) -> float:
        return self.end - perf_counter()

    def _keep(self, name: str, calculate: Callable[[], Any]) -> None:
        """Calculate a part of the evidence and store it under its name."""

        def keep() -> None:
            self.found[name] = calculate()

        self._do(name, keep)

    def _do(self, name: str, work: Callable[[], None], seconds: float = 0.0) -> None:
        """Run one part; list it in `not_shown` if it fails or takes too long."""
        if self.stopped:
            self.not_shown.append(f"{name}: Ctrl-C")
            return
        if seconds > self._left():
            self.not_shown.append(f"{name}: no time")
            return
        self.on_step(name)
        try:
            with deadline(max(self._left(), 0.1)):
                work()
        except TimeUp:
            self.not_shown.append(f"{name}: no time")
        except KeyboardInterrupt:
            self.stopped = True
            self.not_shown.append(f"{name}: Ctrl-C")
        except Exception as error:  # a report without one part is better than none
            message = " ".join(str(error).split())
            self.not_shown.append(f"{name}: {type(error).__name__}: {message}"[:300])
