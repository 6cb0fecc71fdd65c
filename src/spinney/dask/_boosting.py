"""Boosting on Dask: workers add their histograms, and no rows are sent between them."""

from __future__ import annotations

import os
import pickle
import secrets
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from spinney import ensemble
from spinney.boosting.distributed import fit_seed, trees_of_boosters
from spinney.dask._boost_driver import BoostDriver
from spinney.dask._boost_task import TOPIC, BoostTaskPlan
from spinney.dask._cluster import await_workers, find_client
from spinney.dask._model import (
    DaskModel,
    DecisionMixin,
    InMemoryMixin,
    IntervalsMixin,
    LeavesMixin,
    LogProbabilitiesMixin,
    SetsMixin,
)
from spinney.dask._rows import DaskRows, is_path, read_rows
from spinney.model_file.files import load
from spinney.runtime.progress import progress_hook

__all__ = ["GradientBoostingClassifier", "GradientBoostingRanker", "GradientBoostingRegressor"]

# Parameters that may differ between the fit of a checkpoint and the fit that continues it.
_MAY_DIFFER = ("n_jobs", "verbose", "callbacks", "random_state")


class _DaskBooster(LeavesMixin, InMemoryMixin, DaskModel[Any]):
    """The base class of the boosters."""

    _is_ranker = False
    random_state: Any
    callbacks: Any
    verbose: Any

    @property
    def workers_(self) -> list[dict[str, Any]]:
        """Rows, bytes sent, exchanges, seconds and peak memory of each worker."""
        return list(vars(self).get("_dask_report", []))

    def _held_out_rows(self) -> Any:
        """Return the validation rows of early stopping, as the local estimator does."""
        return super(DaskModel, self)._held_out_rows()  # type: ignore[misc]

    def _boost(
        self,
        X: Any,
        y: Any,
        weights: Any = None,
        group: Any = None,
        *,
        eval_set: Any,
        checkpoint: Any,
        out_of_core: Any,
    ) -> None:
        """Fit on the workers of the cluster."""
        self._validate_params()  # type: ignore[attr-defined]
        if out_of_core not in (True, False, "auto"):
            raise ValueError(f"out_of_core: expected True, False or 'auto', got {out_of_core!r}")
        if out_of_core == "auto":
            out_of_core = is_path(X)
        if y is None:
            raise ValueError(f"y: {type(self).__name__} requires targets, got None")
        if self._is_ranker and group is None:
            raise ValueError(
                "group: expected the group of each row, as an array, a Dask collection or the name "
                "of a column of X, got None"
            )
        if checkpoint is not None:
            _check_folder(checkpoint)
        # Before any rows are read: without workers that would wait forever.
        n_partitions = len(await_workers(find_client()))
        rows = read_rows(X, y, weights, group, n_partitions=n_partitions)
        validation = None
        if eval_set is not None:
            validation = self._read_eval_set_rows(eval_set, n_partitions)
        driver = BoostDriver(
            self._plan(rows, checkpoint),
            rows,
            validation,
            hook=progress_hook(self, scored=True),
            checkpoint=checkpoint,
            in_files=bool(out_of_core),
        )
        model = driver.run()
        self._copy_fitted_state(model)
        self._dask_report = driver.report
        self._dask_losses = driver.n_losses
        if checkpoint is not None:
            finished = self.to_local()
            finished.callbacks = None  # model files hold no code
            finished.save(checkpoint)

    def _plan(self, rows: DaskRows, checkpoint: Any) -> BoostTaskPlan:
        """Return the settings of the fit, with the trees of the checkpoint if it exists."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        local = self._local_class(**{**params, "callbacks": None, "verbose": 0, "n_jobs": None})
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        start = None
        expected_rows: dict[str, Any] | None = None if checkpoint is None else {}
        if checkpoint is not None and Path(checkpoint).exists():
            begun = _read_checkpoint(local, checkpoint)
            expected_rows = vars(begun).get("_checkpoint_rows", {})
            if expected_rows:  # older model files have no sums over their rows
                _check_checkpoint(begun, rows.names, self.random_state, seed, checkpoint=checkpoint)
            seed, start = fit_seed(begun), _pickled_trees(begun)
        return BoostTaskPlan(
            estimator=local,
            seed=seed,
            token="",
            is_ranker=self._is_ranker,
            start=start,
            topic=f"{TOPIC}-{secrets.token_hex(8)}",
            expected_rows=expected_rows,
        )

    def _read_eval_set_rows(self, eval_set: Any, n_partitions: int) -> DaskRows:
        third = "group" if self._is_ranker else "sample_weight"
        sizes = (3,) if self._is_ranker else (2, 3)
        if not isinstance(eval_set, tuple | list) or len(eval_set) not in sizes:
            forms = "(X, y, group)" if self._is_ranker else "(X, y) or (X, y, sample_weight)"
            raise ValueError(f"eval_set: expected {forms}")
        more = {third: eval_set[2]} if len(eval_set) == 3 else {}
        return read_rows(eval_set[0], eval_set[1], **more, n_partitions=n_partitions)


def _pickled_trees(begun: Any) -> bytes | None:
    """Return the trees of each booster of a checkpoint, or None if they are not known."""
    stores = trees_of_boosters(begun)
    return None if stores is None else pickle.dumps(stores)


def _read_checkpoint(local: Any, path: Any) -> Any:
    """Load the model of a checkpoint, and check that its parameters are the same."""
    begun = load(path)
    if type(begun) is not type(local):
        raise ValueError(
            f"checkpoint={os.fspath(path)!r}: expected a {type(local).__name__}, got a "
            f"{type(begun).__name__}"
        )
    saved = begun.get_params(deep=False)
    for name, value in local.get_params(deep=False).items():
        if name == "n_estimators" and _only_adds_rounds(saved, value):
            continue
        if name not in _MAY_DIFFER and repr(saved[name]) != repr(value):
            raise ValueError(
                f"checkpoint={os.fspath(path)!r}: expected a fit with {name}={value!r}, got "
                f"{saved[name]!r}; delete the file to start from scratch"
            )
    return begun


def _only_adds_rounds(saved: dict[str, Any], n_rounds: Any) -> bool:
    """Return whether the fit adds rounds, and only n_estimators sets their number."""
    before = saved["n_estimators"]
    are_numbers = isinstance(before, Integral) and isinstance(n_rounds, Integral)
    return are_numbers and saved["early_stopping"] is False and before <= n_rounds


def _check_checkpoint(
    begun: Any, names: Any, random_state: Any, seed: int, *, checkpoint: Any
) -> None:
    """Raise an error if a checkpoint has other columns or another seed."""
    saved = vars(begun).get("feature_names_in_")
    saved = None if saved is None else list(saved)
    now = names if names is not None and all(isinstance(name, str) for name in names) else None
    difference = None
    if saved != now:
        difference = f"the columns {saved}, got {now}"
    elif isinstance(random_state, Integral) and seed != fit_seed(begun):
        difference = f"random_state={begun.random_state!r}, got {random_state!r}"
    if difference is not None:
        raise ValueError(
            f"checkpoint={os.fspath(checkpoint)!r}: expected a fit with {difference}; delete the "
            "file to start from scratch"
        )


def _check_folder(path: Any) -> None:
    """Raise an error before the fit if the checkpoint cannot be written."""
    folder = Path(path).absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(
            f"checkpoint={os.fspath(path)!r}: expected a file in a writable folder, got "
            f"{os.fspath(folder)!r}"
        )


class GradientBoostingClassifier(  # type: ignore[misc]
    LogProbabilitiesMixin,
    DecisionMixin,
    SetsMixin,
    _DaskBooster,
    ensemble.GradientBoostingClassifier,
):
    """Gradient boosting for classification, fitted by all workers of a cluster.

    Each worker codes its partitions once and keeps them. For each tree the workers add their
    integer histograms and choose the same splits. The model therefore does not depend on the
    number of workers or partitions. It is that of `spinney.ensemble.GradientBoostingClassifier`,
    to the bit. If a worker is lost, the others continue from the last finished tree.

    Parameters and attributes are those of `spinney.ensemble.GradientBoostingClassifier`. Not
    available on Dask: ``max_bins=None``, `warm_start`, `scoring`, and columns of more than
    `max_set_categories` categories.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_breast_cancer
    >>> from spinney.dask import GradientBoostingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = da.from_array(X, chunks=(100, 30))
    >>> with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None):
    ...     model = GradientBoostingClassifier(n_estimators=20).fit(X, y)
    ...     accuracy = model.score(X, y)
    >>> accuracy > 0.98
    True
    """

    _local_class = ensemble.GradientBoostingClassifier

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        checkpoint: Any = None,
        out_of_core: bool | str = "auto",
    ) -> GradientBoostingClassifier:
        """Fit the model.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Classes. A partition may lack some of them.
        sample_weight : like y, default=None
            Weights of rows. Bin edges are those of the local class, and integer weights are
            equivalent to repeated rows.
        eval_set : tuple (X, y) or (X, y, sample_weight), default=None
            Validation rows of early stopping, instead of rows of X.
        checkpoint : path, default=None
            File that the model is written to from time to time, and at the end. If the file
            exists, the fit continues from its trees; other rows or parameters are an error.
        out_of_core : bool or "auto", default="auto"
            Whether workers keep only the codes of their rows in memory, one byte for each value,
            and the rows in files, from which they read one partition at a time. "auto" does this
            if X is a path.

        Returns
        -------
        GradientBoostingClassifier
            The estimator.
        """
        self._boost(
            X,
            y,
            sample_weight,
            eval_set=eval_set,
            checkpoint=checkpoint,
            out_of_core=out_of_core,
        )
        return self


class GradientBoostingRegressor(  # type: ignore[misc]
    IntervalsMixin, _DaskBooster, ensemble.GradientBoostingRegressor
):
    """Gradient boosting for regression, fitted by all workers of a cluster.

    Like `spinney.dask.GradientBoostingClassifier`, with the parameters and attributes of
    `spinney.ensemble.GradientBoostingRegressor`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.dask import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X = da.from_array(X, chunks=(100, 10))
    >>> with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None):
    ...     model = GradientBoostingRegressor(n_estimators=50).fit(X, y)
    ...     r2 = model.score(X, y)
    >>> r2 > 0.4
    True
    """

    _local_class = ensemble.GradientBoostingRegressor

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        checkpoint: Any = None,
        out_of_core: bool | str = "auto",
    ) -> GradientBoostingRegressor:
        """Fit the model.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Targets.
        sample_weight : like y, default=None
            Weights of rows. Bin edges are those of the local class, and integer weights are
            equivalent to repeated rows.
        eval_set : tuple (X, y) or (X, y, sample_weight), default=None
            Validation rows of early stopping, instead of rows of X.
        checkpoint : path, default=None
            File that the model is written to from time to time, and at the end. If the file
            exists, the fit continues from its trees; other rows or parameters are an error.
        out_of_core : bool or "auto", default="auto"
            Whether workers keep only the codes of their rows in memory, one byte for each value,
            and the rows in files, from which they read one partition at a time. "auto" does this
            if X is a path.

        Returns
        -------
        GradientBoostingRegressor
            The estimator.
        """
        self._boost(
            X,
            y,
            sample_weight,
            eval_set=eval_set,
            checkpoint=checkpoint,
            out_of_core=out_of_core,
        )
        return self


class GradientBoostingRanker(_DaskBooster, ensemble.GradientBoostingRanker):  # type: ignore[misc]
    """Gradient boosting for ranking, fitted by all workers of a cluster.

    Like `spinney.dask.GradientBoostingClassifier`, with the parameters and attributes of
    `spinney.ensemble.GradientBoostingRanker`. The rows of a group must be consecutive and in
    one partition.
    """

    _local_class = ensemble.GradientBoostingRanker
    _is_ranker = True

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        *,
        group: Any,
        eval_set: Any = None,
        checkpoint: Any = None,
        out_of_core: bool | str = "auto",
    ) -> GradientBoostingRanker:
        """Fit the model.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Relevance, from 0.
        group : like y
            The group of each row.
        eval_set : tuple (X, y, group), default=None
            Validation rows of early stopping, instead of rows of X.
        checkpoint : path, default=None
            File that the model is written to from time to time, and at the end. If the file
            exists, the fit continues from its trees; other rows or parameters are an error.
        out_of_core : bool or "auto", default="auto"
            Whether workers keep only the codes of their rows in memory, one byte for each value,
            and the rows in files, from which they read one partition at a time. "auto" does this
            if X is a path.

        Returns
        -------
        GradientBoostingRanker
            The estimator.
        """
        self._boost(
            X,
            y,
            group=group,
            eval_set=eval_set,
            checkpoint=checkpoint,
            out_of_core=out_of_core,
        )
        return self

    def score(self, X: Any, y: Any, *, group: Any = None, k: int | None = None) -> float:  # type: ignore[override]
        """Return the mean NDCG over the groups that have a relevant row.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y, group : Dask array or series, array, or name of a column of X
            Relevance and group of each row.
        k : int or None, default=None
            Number of first positions that count; None means all.

        Returns
        -------
        float
            Between 0 and 1.
        """
        predicted = self._predict_partitions(read_rows(X, y, group=group))
        local: Any = self.to_local()
        local.predict = lambda _: predicted.X
        return float(local.score(predicted.X, predicted.y, group=predicted.group, k=k))
