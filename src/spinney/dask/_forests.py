"""Forests whose rows are Dask collections: shares of trees, grown on all rows or on blocks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from spinney import ensemble
from spinney.dask._linear import count_classes, merge_classes
from spinney.dask._model import (
    DaskModel,
    DecisionMixin,
    HereMixin,
    IntervalsMixin,
    LeavesMixin,
    LogProbabilitiesMixin,
    QuantilesMixin,
    SetsMixin,
)
from spinney.dask._rows import (
    Part,
    Rows,
    join_parts,
    leave_pool,
    need_dask,
    read_rows,
    workers_of,
)
from spinney.data.table import fit_table
from spinney.distributed.agreement import join_schemas
from spinney.forest.base import ForestShare
from spinney.runtime.progress import progress_hook

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "IsolationForest",
    "RandomForestClassifier",
    "RandomForestRegressor",
]

_ROOM = 0.5  # share of a worker's memory that a forest's rows may take
_TIMES = 3  # as much memory as the rows themselves take, while trees are grown


class _DaskForest(HereMixin, DaskModel[Any]):
    """What the forests share."""

    _has_targets = True
    random_state: Any
    n_estimators: int

    def _grow(self, X: Any, y: Any, sample_weight: Any, spread: str) -> Any:
        self._validate_params()  # type: ignore[attr-defined]
        self._refuse()
        if spread not in ("auto", "trees", "rows"):
            raise ValueError(f"spread: expected 'auto', 'trees' or 'rows', got {spread!r}")
        if self._has_targets and y is None:
            raise ValueError(f"y: {type(self).__name__} requires targets, got None")
        rows = read_rows(X, y, sample_weight).keep()
        sizes = rows.ask(_sizes)
        filled = [i for i, one in enumerate(sizes) if one[0]]
        if not filled:
            raise ValueError("X: expected at least one row, got none in any partition")
        rows = rows.take(filled)
        if spread == "auto":
            fits = _TIMES * sum(sizes[i][1] for i in filled) <= _ROOM * _least_memory()
            spread = "trees" if fits else "rows"
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        shares = (
            self._share_trees(rows, seed) if spread == "trees" else self._share_rows(rows, seed)
        )
        forest = _merge(shares, of_blocks=spread == "rows")
        self._take_over(forest)
        self.spread_ = spread
        return rows

    def _refuse(self) -> None:
        for name, wanted in (
            ("warm_start", False),
            ("oob_score", False),
            ("importance_type", "impurity"),
        ):
            value = getattr(self, name, wanted)
            if value != wanted:
                raise ValueError(f"{name}={value!r}: expected {wanted!r} for rows in partitions")

    def _local(self, n_trees: int) -> Any:
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        params.update(callbacks=None, verbose=0, n_estimators=n_trees)
        if "contamination" in params:
            params["contamination"] = "auto"
        return self._local_class(**params)

    def _share_trees(self, rows: Rows, seed: int) -> list[Any]:
        """Have each worker grow some of the trees from all rows."""
        crew = _workers()
        n_trees: int = self.n_estimators
        ends = np.linspace(0, n_trees, min(max(1, len(crew)), n_trees) + 1).astype(int)
        dask = need_dask()
        grow = dask.delayed(_grow_share, pure=False)
        tasks = [
            grow(rows.parts, self._local(int(b - a)), ForestShare(int(a), seed), None, None)
            for a, b in pairwise(ends)
        ]
        if not crew:
            return self._watch(list(tasks))
        from distributed import get_client

        client = get_client()
        futures = [
            client.compute(task, workers=[address], allow_other_workers=True)
            for task, address in zip(tasks, crew, strict=False)
        ]
        return self._watch(futures)

    def _share_rows(self, rows: Rows, seed: int) -> list[Any]:
        """Have each block of rows grow some of the trees, wherever it is."""
        told = rows.ask(_learn_columns, self._local(1))
        schema, names = join_schemas(told)
        classes = None
        if hasattr(self._local_class, "predict_proba"):
            outputs = rows.ask(_count_classes_of_outputs)
            if len({len(one) for one in outputs}) > 1:
                raise ValueError("y: expected the same number of columns in all partitions")
            classes = [merge_classes(list(one))[0] for one in zip(*outputs, strict=True)]
        n_trees: int = self.n_estimators
        n_blocks = min(len(rows.parts), n_trees)
        blocks = np.array_split(np.arange(len(rows.parts)), n_blocks)
        ends = np.linspace(0, n_trees, n_blocks + 1).astype(int)
        grow = need_dask().delayed(_grow_share, pure=False)
        tasks = [
            grow(
                [rows.parts[i] for i in block],
                self._local(int(b - a)),
                ForestShare(int(a), seed, schema, classes),
                names,
                1,
            )
            for block, a, b in zip(blocks, ends[:-1], ends[1:], strict=True)
        ]
        return self._watch(tasks)

    def _watch(self, tasks: list[Any]) -> list[Any]:
        """Wait for the shares, and tell how many there are so far."""
        leave_pool()
        hook = progress_hook(self)
        try:
            from dask.delayed import Delayed

            from distributed import as_completed, get_client

            client = get_client()
        except (ImportError, ValueError):
            return list(need_dask().compute(*tasks))
        # A Delayed says that it has any attribute.
        futures = client.compute(tasks) if isinstance(tasks[0], Delayed) else tasks
        total = self.n_estimators
        for done, _ in enumerate(as_completed(futures), 1):
            if hook is not None:
                hook(done * total // len(futures), total)
        return list(client.gather(futures))


def _workers() -> list[str]:
    """Addresses of the workers; none where Dask computes in this process."""
    try:
        from distributed import get_client

        return sorted(workers_of(get_client()))
    except (ImportError, ValueError):
        return []


def _least_memory() -> float:
    try:
        from distributed import get_client

        workers = workers_of(get_client()).values()
        return min((one["memory_limit"] or np.inf for one in workers), default=np.inf)
    except (ImportError, ValueError):
        return np.inf


def _sizes(part: Part) -> tuple[int, int]:
    if hasattr(part.X, "memory_usage"):
        return part.n_rows, int(part.X.memory_usage(deep=False).sum())
    return part.n_rows, int(part.X.nbytes)


def _learn_columns(part: Part, estimator: Any) -> Any:
    schema = fit_table(estimator, part.X, categorical_features=estimator.categorical_features)[1]
    return schema, vars(estimator).get("feature_names_in_")


def _count_classes_of_outputs(part: Part) -> list[tuple[Any, Any]]:
    y = part.y.reshape(part.n_rows, -1)
    return [count_classes(Part(part.X, column, part.weights)) for column in y.T]


def _grow_share(
    parts: list[Part], estimator: Any, share: ForestShare, names: Any, n_threads: int | None
) -> Any:
    """Grow some trees of a forest."""
    part = join_parts(parts)
    if n_threads is None:
        n_threads = _own_threads()
    estimator.n_jobs, estimator._share = n_threads, share
    if share.schema is not None:
        estimator.n_features_in_ = share.schema.n_features
        if names is not None:
            estimator.feature_names_in_ = names
    if isinstance(estimator, ensemble.IsolationForest):
        estimator.fit(part.X, None, part.weights)
    else:
        estimator.fit(part.X, part.y, part.weights)
    del estimator._share
    return estimator


def _own_threads() -> int | None:
    try:
        from distributed import get_worker

        return int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return None


def _merge(shares: list[Any], *, of_blocks: bool) -> Any:
    """Put the trees of all shares into one forest."""
    forest = shares[0]
    for share in shares[1:]:
        forest._store.extend(share._store)
        if "estimators_features_" in vars(forest):
            forest.estimators_features_ = forest.estimators_features_ + share.estimators_features_
    forest.__dict__.pop("_estimators", None)
    forest.__dict__.pop("_held_out", None)  # what the trees of one share say, not those of all
    if of_blocks:
        # Rows out of the bag, and targets of leaves, are known by their number in a block.
        for name in [n for n in vars(forest) if n.startswith("_oob")] + ["_targets"]:
            forest.__dict__.pop(name, None)
    elif "_oob_sums" in vars(forest):
        for name in ("_oob_sums", "_oob_squares", "_oob_n_trees"):
            setattr(forest, name, sum(getattr(share, name) for share in shares))
        forest.__dict__.pop("_oob_curve", None)
    return forest


_FIT = """Grow the forest.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Targets. A partition may lack some of the classes.
        sample_weight : as y, default=None
            Weights of rows.
        spread : {"auto", "trees", "rows"}, default="auto"
            What workers share: "trees" has each grow some of them from all rows, "rows" has each
            partition grow some of the trees. "auto" is "trees" if all rows fit into half of a
            worker's memory, three times over.

        Returns
        -------
        estimator
            Itself.
        """


class _SupervisedForest(LeavesMixin, _DaskForest):
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, spread: str = "auto") -> Any:
        self._grow(X, y, sample_weight, spread)
        return self

    fit.__doc__ = _FIT


class RandomForestClassifier(  # type: ignore[misc]
    LogProbabilitiesMixin, SetsMixin, _SupervisedForest, ensemble.RandomForestClassifier
):
    """A random forest whose trees are grown by the workers of a cluster.

    With ``spread="trees"`` each worker grows some of the trees from all rows: the forest is that
    of `spinney.ensemble.RandomForestClassifier` to the bit. With ``spread="rows"`` each partition
    grows some of the trees, so that no worker needs more rows than it has: trees see fewer rows
    each, and partitions must be alike (shuffled). Neither depends on the number of workers.

    Parameters and attributes are those of `spinney.ensemble.RandomForestClassifier`; `oob_score`,
    `warm_start` and importances other than "impurity" are not on Dask. ``spread_`` says what was
    spread.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from spinney.dask import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X = da.from_array(X, chunks=(50, 4))
    >>> model = RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.98
    True
    """

    _local_class = ensemble.RandomForestClassifier


class RandomForestRegressor(  # type: ignore[misc]
    IntervalsMixin, QuantilesMixin, _SupervisedForest, ensemble.RandomForestRegressor
):
    """A random forest of numbers whose trees are grown by the workers of a cluster.

    As `spinney.dask.RandomForestClassifier`, with the parameters and attributes of
    `spinney.ensemble.RandomForestRegressor`. Quantiles need ``spread="trees"``.
    """

    _local_class = ensemble.RandomForestRegressor


class ExtraTreesClassifier(  # type: ignore[misc]
    LogProbabilitiesMixin, SetsMixin, _SupervisedForest, ensemble.ExtraTreesClassifier
):
    """Extremely randomised trees, grown by the workers of a cluster.

    As `spinney.dask.RandomForestClassifier`, with the parameters and attributes of
    `spinney.ensemble.ExtraTreesClassifier`.
    """

    _local_class = ensemble.ExtraTreesClassifier


class ExtraTreesRegressor(  # type: ignore[misc]
    IntervalsMixin, QuantilesMixin, _SupervisedForest, ensemble.ExtraTreesRegressor
):
    """Extremely randomised trees of numbers, grown by the workers of a cluster.

    As `spinney.dask.RandomForestClassifier`, with the parameters and attributes of
    `spinney.ensemble.ExtraTreesRegressor`. Quantiles need ``spread="trees"``.
    """

    _local_class = ensemble.ExtraTreesRegressor


class IsolationForest(DecisionMixin, _DaskForest, ensemble.IsolationForest):  # type: ignore[misc]
    """An isolation forest whose trees are grown by the workers of a cluster.

    `spread` is as in `spinney.dask.RandomForestClassifier`; as each tree sees few rows anyway,
    little is lost with ``spread="rows"`` if partitions are alike. With a number as `contamination`
    the scores of all rows come together, 8 bytes a row.

    Parameters and attributes are those of `spinney.ensemble.IsolationForest`.
    """

    _local_class = ensemble.IsolationForest
    _has_targets = False

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, spread: str = "auto"
    ) -> IsolationForest:
        """Grow the forest.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : object, default=None
            Not used.
        sample_weight : Dask array or series, array, or name of a column of X, default=None
            Rows are drawn in proportion to these.
        spread : {"auto", "trees", "rows"}, default="auto"
            What workers share.

        Returns
        -------
        IsolationForest
            The estimator.
        """
        rows = self._grow(X, None, sample_weight, spread)
        if self.contamination != "auto":
            scores = np.concatenate(rows.ask(_score_part, self.to_local()))
            self.offset_ = float(np.percentile(scores, 100.0 * self.contamination))
        return self

    def score_samples(self, X: Any) -> Any:
        """Return the opposite of the anomaly score: near -1 for outliers, near 0 for others.

        Parameters
        ----------
        X : Dask array, Dask data frame, or rows in memory
            The rows.

        Returns
        -------
        Dask array or series, or ndarray
            The lower, the more abnormal; not computed yet for Dask collections.
        """
        return self._answer("score_samples", X)

    def _answer_dtype(self, method: str) -> Any:
        return np.dtype(np.int64) if method == "predict" else np.dtype(np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Not for outliers: there is nothing to compare with.

        Parameters
        ----------
        X, y, sample_weight : object
            Not used.

        Returns
        -------
        float
            Never.
        """
        raise AttributeError("IsolationForest has no score")


def _score_part(part: Part, model: Any) -> Any:
    return model.score_samples(part.X)
