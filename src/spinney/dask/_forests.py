"""Forests on Dask: workers grow some of the trees each, on all rows or on blocks of rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from spinney import ensemble
from spinney.dask._cluster import (
    get_client_or_none,
    get_worker_or_none,
    import_dask,
    leave_thread_pool,
    workers_of,
)
from spinney.dask._linear import count_classes, merge_classes
from spinney.dask._model import (
    DaskModel,
    DecisionMixin,
    InMemoryMixin,
    IntervalsMixin,
    LeavesMixin,
    LogProbabilitiesMixin,
    QuantilesMixin,
    SetsMixin,
)
from spinney.dask._rows import DaskRows, Part, join_partitions, read_rows
from spinney.data.table import fit_table
from spinney.distributed.agreement import join_schemas
from spinney.distributed.workers import Workers
from spinney.forest.merging import merge_forests
from spinney.runtime.progress import progress_hook

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "IsolationForest",
    "RandomForestClassifier",
    "RandomForestRegressor",
]

_MEMORY_FRACTION = 0.5  # of a worker's memory that the growth of a forest may take
_MEMORY_FACTOR = 3  # memory that the growth of trees takes, as a multiple of that of the rows


class _DaskForest(InMemoryMixin, DaskModel[Any]):
    """The base class of the forests."""

    _has_targets = True
    random_state: Any
    n_estimators: int

    def _grow(self, X: Any, y: Any, sample_weight: Any, spread: str) -> DaskRows:
        """Fit, and return the partitions that have rows."""
        self._validate_params()  # type: ignore[attr-defined]
        self._check_supported()
        if spread not in ("auto", "trees", "rows"):
            raise ValueError(f"spread: expected 'auto', 'trees' or 'rows', got {spread!r}")
        if self._has_targets and y is None:
            raise ValueError(f"y: {type(self).__name__} requires targets, got None")
        rows = read_rows(X, y, sample_weight).persist()
        sizes = rows.compute(_sizes)
        filled = [i for i, (n_rows, _) in enumerate(sizes) if n_rows]
        if not filled:
            raise ValueError("X: expected at least one row, got none in any partition")
        rows = rows.select(filled)
        if spread == "auto":
            n_bytes = _MEMORY_FACTOR * sum(sizes[i][1] for i in filled)
            spread = "trees" if n_bytes <= _MEMORY_FRACTION * _least_memory() else "rows"
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        grow = self._grow_on_all_rows if spread == "trees" else self._grow_on_blocks
        forest = merge_forests(grow(rows, seed), same_rows=spread == "trees")
        self._copy_fitted_state(forest)
        self.spread_ = spread
        return rows

    def _check_supported(self) -> None:
        """Refuse parameters that do not work with partitions."""
        for name, expected in (
            ("warm_start", False),
            ("oob_score", False),
            ("importance_type", "impurity"),
        ):
            value = getattr(self, name, expected)
            if value != expected:
                raise ValueError(f"{name}={value!r}: expected {expected!r} for rows in partitions")

    def _local(self, n_trees: int) -> Any:
        """Return an unfitted local forest with this number of trees."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        params.update(callbacks=None, verbose=0, n_estimators=n_trees)
        if "contamination" in params:
            params["contamination"] = "auto"
        return self._local_class(**params)

    def _grow_on_all_rows(self, rows: DaskRows, seed: int) -> list[Any]:
        """Grow some of the trees on each worker, from all rows."""
        client = get_client_or_none()
        addresses = [] if client is None else sorted(workers_of(client))
        n_trees: int = self.n_estimators
        ends = np.linspace(0, n_trees, min(max(1, len(addresses)), n_trees) + 1).astype(int)
        grow = import_dask().delayed(_grow_trees, pure=False)
        tasks = [
            grow(
                rows.parts,
                self._local(int(b - a)),
                Workers(seed=seed, first_tree=int(a)),
                None,
                None,
            )
            for a, b in pairwise(ends)
        ]
        if not addresses:
            return self._gather_forests(tasks)
        futures = [
            client.compute(task, workers=[address], allow_other_workers=True)
            for task, address in zip(tasks, addresses, strict=False)
        ]
        return self._gather_forests(futures)

    def _grow_on_blocks(self, rows: DaskRows, seed: int) -> list[Any]:
        """Grow some of the trees from each block of rows, on any worker."""
        schema, names = join_schemas(rows.compute(_read_schema, self._local(1)))
        classes = None
        if hasattr(self._local_class, "predict_proba"):
            counts = rows.compute(_count_classes_of_outputs)
            if len({len(of_part) for of_part in counts}) > 1:
                raise ValueError("y: expected the same number of columns in all partitions")
            classes = [merge_classes(list(of_output))[0] for of_output in zip(*counts, strict=True)]
        n_trees: int = self.n_estimators
        n_blocks = min(len(rows.parts), n_trees)
        blocks = np.array_split(np.arange(len(rows.parts)), n_blocks)
        ends = np.linspace(0, n_trees, n_blocks + 1).astype(int)
        grow = import_dask().delayed(_grow_trees, pure=False)
        tasks = [
            grow(
                [rows.parts[i] for i in block],
                self._local(int(b - a)),
                Workers(seed=seed, first_tree=int(a), schema=schema, classes=classes),
                names,
                1,
            )
            for block, a, b in zip(blocks, ends[:-1], ends[1:], strict=True)
        ]
        return self._gather_forests(tasks)

    def _gather_forests(self, tasks: list[Any]) -> list[Any]:
        """Wait for the forests of all tasks or futures, and report the progress."""
        leave_thread_pool()
        hook = progress_hook(self)
        client = get_client_or_none()
        if client is None:
            return list(import_dask().compute(*tasks))
        from dask.delayed import Delayed  # optional dependency

        from distributed import as_completed  # optional dependency

        # By type: a Delayed claims to have every attribute.
        futures = client.compute(tasks) if isinstance(tasks[0], Delayed) else tasks
        total = self.n_estimators
        for done, _ in enumerate(as_completed(futures), 1):
            if hook is not None:
                hook(done * total // len(futures), total)
        return list(client.gather(futures))


def _least_memory() -> float:
    """Return the smallest memory limit of the workers."""
    client = get_client_or_none()
    workers = {} if client is None else workers_of(client)
    return min((worker["memory_limit"] or np.inf for worker in workers.values()), default=np.inf)


def _sizes(part: Part) -> tuple[int, int]:
    """Return the number of rows, and of the bytes of X."""
    if hasattr(part.X, "memory_usage"):
        return part.n_rows, int(part.X.memory_usage(deep=False).sum())
    return part.n_rows, int(part.X.nbytes)


def _read_schema(part: Part, estimator: Any) -> Any:
    """Return the schema and the names of the columns."""
    schema = fit_table(estimator, part.X, categorical_features=estimator.categorical_features)[1]
    return schema, vars(estimator).get("feature_names_in_")


def _count_classes_of_outputs(part: Part) -> list[tuple[Any, Any]]:
    y = part.y.reshape(part.n_rows, -1)
    return [count_classes(Part(part.X, column, part.weights)) for column in y.T]


def _grow_trees(
    parts: list[Part], estimator: Any, workers: Workers, names: Any, n_threads: int | None
) -> Any:
    """Grow some trees of a forest; n_threads=None uses all threads of the worker."""
    part = join_partitions(parts)
    if n_threads is None:
        n_threads = _own_threads()
    estimator.n_jobs = n_threads
    if workers.schema is not None:
        estimator.n_features_in_ = workers.schema.n_features
        if names is not None:
            estimator.feature_names_in_ = names
    return estimator.grow_trees(part.X, part.y, part.weights, workers)


def _own_threads() -> int | None:
    """Return the number of threads of this worker, or None outside of workers."""
    worker = get_worker_or_none()
    return None if worker is None else int(worker.state.nthreads)


_FIT = """Grow the forest.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Targets. A partition may lack some of the classes.
        sample_weight : like y, default=None
            Weights of rows.
        spread : {"auto", "trees", "rows"}, default="auto"
            How the work is distributed. "trees": each worker grows some of the trees from all
            rows. "rows": some of the trees are grown from each partition. "auto" is "trees" if
            three times the rows fit into half of a worker's memory.

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
    of `spinney.ensemble.RandomForestClassifier` to the bit. With ``spread="rows"`` some of the
    trees are grown from each partition, so that no worker needs other rows than its own. Each tree
    then has fewer training rows, and the partitions must be similar (shuffled). Neither forest
    depends on the number of workers.

    Parameters and attributes are those of `spinney.ensemble.RandomForestClassifier`. `oob_score`,
    `warm_start` and importances other than "impurity" are not available on Dask. ``spread_`` is
    the distribution that was used.

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
    """A random forest for regression, grown by the workers of a cluster.

    Like `spinney.dask.RandomForestClassifier`, with the parameters and attributes of
    `spinney.ensemble.RandomForestRegressor`. Quantiles need ``spread="trees"``.
    """

    _local_class = ensemble.RandomForestRegressor


class ExtraTreesClassifier(  # type: ignore[misc]
    LogProbabilitiesMixin, SetsMixin, _SupervisedForest, ensemble.ExtraTreesClassifier
):
    """Extremely randomised trees, grown by the workers of a cluster.

    Like `spinney.dask.RandomForestClassifier`, with the parameters and attributes of
    `spinney.ensemble.ExtraTreesClassifier`.
    """

    _local_class = ensemble.ExtraTreesClassifier


class ExtraTreesRegressor(  # type: ignore[misc]
    IntervalsMixin, QuantilesMixin, _SupervisedForest, ensemble.ExtraTreesRegressor
):
    """Extremely randomised trees for regression, grown by the workers of a cluster.

    Like `spinney.dask.RandomForestClassifier`, with the parameters and attributes of
    `spinney.ensemble.ExtraTreesRegressor`. Quantiles need ``spread="trees"``.
    """

    _local_class = ensemble.ExtraTreesRegressor


class IsolationForest(DecisionMixin, _DaskForest, ensemble.IsolationForest):  # type: ignore[misc]
    """An isolation forest whose trees are grown by the workers of a cluster.

    `spread` is that of `spinney.dask.RandomForestClassifier`. Each tree has few training rows
    anyway, so ``spread="rows"`` loses little if the partitions are similar. If `contamination` is
    a number, the scores of all rows are gathered, 8 bytes for each row.

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
            How the work is distributed, as in `spinney.dask.RandomForestClassifier`.

        Returns
        -------
        IsolationForest
            The estimator.
        """
        rows = self._grow(X, None, sample_weight, spread)
        if self.contamination != "auto":
            scores = np.concatenate(rows.compute(_score_partition, self.to_local()))
            self.offset_ = float(np.percentile(scores, 100.0 * self.contamination))
        return self

    def score_samples(self, X: Any) -> Any:
        """Return the negated anomaly score: near -1 for outliers, near 0 for others.

        Parameters
        ----------
        X : Dask array, Dask data frame, or rows in memory
            The rows.

        Returns
        -------
        Dask array or series, or ndarray
            The lower, the more abnormal; lazy for Dask collections.
        """
        return self._call_local("score_samples", X)

    def _output_dtype(self, method: str) -> Any:
        return np.dtype(np.int64) if method == "predict" else np.dtype(np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Raise an error: there are no targets to compare scores with.

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


def _score_partition(part: Part, model: Any) -> Any:
    return model.score_samples(part.X)
