"""The training rows of boosters as bins, and other rows by the same bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney import _core
from spinney.boosting._fit_plan import FitPlan
from spinney.boosting._target_statistics import Statistic, ordered_statistics
from spinney.data.core_table import core_table
from spinney.data.table import Table
from spinney.distributed.agreement import agree_on_bins

__all__ = ["Bins", "make_bins"]


class Bins:
    """The rows of a fit as bins.

    Parameters
    ----------
    plan : FitPlan
        The rows and their weights. Bin edges are quantiles of the weighted rows.
    statistics : list of Statistic
        Columns that replace columns of many categories.
    max_bins : int or None
        Largest number of bins of a column; None: each value has a bin of its own.
    train_rows : ndarray of uint32 or None
        Rows that determine the bin edges; None: all.
    """

    def __init__(
        self, plan: FitPlan, statistics: list[Statistic], max_bins: int | None, train_rows: Any
    ) -> None:
        data = plan.data
        self.schema = data.schema
        self.statistics = statistics
        self.n_threads = plan.n_threads
        if data.workers.share_rows:
            assert max_bins is not None
            assert not statistics
            self.matrix: Any = agree_on_bins(
                data.table,
                data.schema,
                max_bins=max_bins,
                train_rows=train_rows,
                weights=data.weights,
                totals=data.workers.totals,
                n_threads=plan.n_threads,
            )
            return
        rows = self._with_statistics(data.table, [statistic.of_row for statistic in statistics])
        self.matrix = (
            _core.exact_table(rows, True, plan.n_threads)
            if max_bins is None
            else _core.bin_table(rows, max_bins, plan.n_threads, train_rows, data.weights)
        )
        for index, statistic in enumerate(statistics, data.schema.n_features):
            self.matrix.derive(index, statistic.source, statistic.of_category.tolist())

    def code(self, table: Table) -> Any:
        """Return other rows as bins."""
        columns = [s.look_up(table.columns[s.source]) for s in self.statistics]  # type: ignore[index]
        rows = self._with_statistics(table, columns)
        if isinstance(self.matrix, _core.ExactMatrix):
            return _core.exact_table(rows, False, self.n_threads)
        return _core.bin_like(rows, self.matrix, self.n_threads)

    def _with_statistics(self, table: Any, statistics: list[Any]) -> Any:
        if not statistics:
            return core_table(table, self.schema)
        assert table.columns is not None
        replaced = {statistic.source for statistic in self.statistics}
        counts = [-1 if values is None else len(values) for values in self.schema.categories]
        columns = list(table.columns)
        for source in replaced:
            # A constant column keeps the indices of the others, and costs nothing.
            columns[source], counts[source] = np.zeros(table.n_rows), -1
        return _core.Table.from_columns([*columns, *statistics], counts + [-1] * len(statistics))

    def extend_signs(self, signs: list[int]) -> list[int]:
        """Add monotonic constraints of the statistics: none."""
        return signs + [0] * len(self.statistics) if signs else []

    def extend_sets(self, sets: list[list[int]]) -> list[list[int]]:
        """Add statistics to the interaction sets that contain their source columns."""
        statistics = list(enumerate(self.statistics, self.schema.n_features))
        return [
            [*columns, *(index for index, s in statistics if s.source in columns)]
            for columns in sets
        ]


def make_bins(
    plan: FitPlan, max_bins: int | None, max_set_categories: int | None, targets: Any
) -> list[Bins]:
    """Return the bins of each fold; without target statistics, folds share them.

    Parameters
    ----------
    plan : FitPlan
        The rows and the folds.
    max_bins : int or None
        See `Bins`.
    max_set_categories : int or None
        Columns with more categories are replaced by target statistics; None: no column is.
    targets : ndarray of shape (n_rows, n_targets)
        The targets that statistics average.
    """
    data = plan.data
    bins_of_folds: list[Bins] = []
    if data.workers.share_rows:
        _require_no_statistics(plan, max_set_categories)
    for number, fold in enumerate(plan.folds):
        statistics: list[Statistic] = []
        for source, values in enumerate(data.schema.categories):
            if max_set_categories is None or values is None or len(values) <= max_set_categories:
                continue
            statistics += ordered_statistics(
                source,
                data.table.columns[source],  # type: ignore[union-attr,index]
                n_categories=len(values),
                targets=targets,
                weights=data.scaled_weights(fold.train_rows)[0],
                train_rows=fold.train_rows,
                seed=plan.seed + number,
            )
        if bins_of_folds and not statistics:
            bins_of_folds.append(bins_of_folds[0])
            continue
        # Folds share their bins. With one split, validation rows have no influence on them.
        own_rows = fold.train_rows if len(plan.folds) == 1 else None
        bins_of_folds.append(Bins(plan, statistics, max_bins, own_rows))
    return bins_of_folds


def _require_no_statistics(plan: FitPlan, max_set_categories: int | None) -> None:
    """Raise a ValueError if workers would need target statistics of all rows."""
    for column, values in enumerate(plan.data.schema.categories):
        if (
            max_set_categories is not None
            and values is not None
            and len(values) > max_set_categories
        ):
            raise ValueError(
                f"max_set_categories={max_set_categories} must be None if several workers fit one "
                f"model and a column has more categories; column {column} has {len(values)}"
            )
