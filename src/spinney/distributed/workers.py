"""The workers of a fit; a local fit has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spinney.data.table import Schema
from spinney.distributed.totals import RowNumbers, Totals

__all__ = ["LOCAL", "NO_CHECKPOINTS", "Checkpoints", "Workers"]


@dataclass(frozen=True)
class Workers:
    """One worker of a fit, and its connection to the others.

    Boosters: every worker has some of the rows, and sums over all rows are all-reduces. Forests:
    every worker grows some of the trees.

    Parameters
    ----------
    totals : Totals
        All-reduces; without an exchange there is one worker.
    numbers : RowNumbers
        Row numbers of this worker's rows in the whole table.
    seed : int or None
        Seed of all workers; None: the estimator draws one.
    first_tree : int
        Number of this worker's first tree in the whole forest.
    schema : Schema or None
        Columns and categories of all rows, if this worker's rows do not determine them.
    classes : sequence of ndarray, or None
        Classes of all rows, for each output, if this worker's rows do not determine them.
    """

    totals: Totals = field(default_factory=Totals)
    numbers: RowNumbers = field(default_factory=RowNumbers)
    seed: int | None = None
    first_tree: int = 0
    schema: Schema | None = None
    classes: Sequence[Any] | None = None

    @property
    def share_rows(self) -> bool:
        """Whether each worker has some of the rows, and sums are all-reduces."""
        return self.totals.shared

    @property
    def is_local(self) -> bool:
        """Whether this worker fits the whole model alone."""
        return self.seed is None


LOCAL = Workers()


@dataclass(frozen=True)
class Checkpoints:
    """State of an interrupted fit of a booster, and a callback for its progress.

    Parameters
    ----------
    trees : sequence of ForestStore
        The trees of each booster so far; boosters beyond the last one have none.
    after_round : callable or None
        Called after each round with the number of rounds of a booster, its store, and its index.
    """

    trees: Sequence[Any] = ()
    after_round: Callable[[int, Any, int], object] | None = None


NO_CHECKPOINTS = Checkpoints()
