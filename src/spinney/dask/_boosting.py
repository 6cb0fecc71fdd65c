"""Boosters whose rows are Dask collections: workers add up histograms, rows stay where they are."""

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
from spinney.dask._boost_task import TOPIC, Plan
from spinney.dask._crew import Crew, await_workers, find_client
from spinney.dask._model import (
    DaskModel,
    DecisionMixin,
    HereMixin,
    IntervalsMixin,
    LeavesMixin,
    LogProbabilitiesMixin,
    SetsMixin,
)
from spinney.dask._rows import is_path, read_rows
from spinney.runtime.progress import progress_hook

__all__ = ["GradientBoostingClassifier", "GradientBoostingRanker", "GradientBoostingRegressor"]

_MAY_DIFFER = (
    "n_jobs",
    "verbose",
    "callbacks",
    "random_state",
)  # between a fit and what it goes on


class _DaskBooster(LeavesMixin, HereMixin, DaskModel[Any]):
    """What the boosters share."""

    _is_ranker = False
    random_state: Any
    callbacks: Any
    verbose: Any

    @property
    def workers_(self) -> list[dict[str, Any]]:
        """What each worker did: rows, bytes sent, exchanges, seconds, peak of its memory."""
        return list(vars(self).get("_dask_report", []))

    def _held_out_rows(self) -> Any:
        """Return the validation rows of early stopping, as the local estimator does."""
        return super(DaskModel, self)._held_out_rows()  # type: ignore[misc]

    def _boost(
        self, X: Any, y: Any, weights: Any, group: Any, eval_set: Any, path: Any, in_files: Any
    ) -> None:
        self._validate_params()  # type: ignore[attr-defined]
        if in_files not in (True, False, "auto"):
            raise ValueError(f"out_of_core: expected True, False or 'auto', got {in_files!r}")
        if in_files == "auto":
            in_files = is_path(X)
        if y is None:
            raise ValueError(f"y: {type(self).__name__} requires targets, got None")
        if self._is_ranker and group is None:
            raise ValueError(
                "group: expected the group of each row, as an array, a Dask collection or the name "
                "of a column of X, got None"
            )
        if path is not None:
            _check_folder(path)
        # Before rows are looked at: without workers that would wait for ever.
        n_parts = len(await_workers(find_client()))
        rows = read_rows(X, y, weights, group, n_parts=n_parts)
        watched = None
        if eval_set is not None:
            watched = self._read_eval_set_rows(eval_set, n_parts)
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        hook = progress_hook(self, scored=True)
        local = self._local_class(**{**params, "callbacks": None, "verbose": 0, "n_jobs": None})
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        start = expected = None
        if path is not None:
            expected = {}
        if path is not None and Path(path).exists():
            begun = _read_checkpoint(local, path)
            expected = vars(begun).get("_checkpoint_rows", {})
            if expected:  # files of older versions do not know their rows
                _check_begun(begun, rows.names, self.random_state, seed, path)
            seed, start = fit_seed(begun), _pickled_trees(begun)
        topic = f"{TOPIC}-{secrets.token_hex(8)}"
        plan = Plan(local, seed, "", self._is_ranker, start, topic, expected)
        crew = Crew(plan, rows, watched, hook, path, bool(in_files))
        model = crew.run()
        self._take_over(model)
        self._dask_report = crew.report
        self._dask_losses = crew.n_losses
        if path is not None:
            finished = self.to_local()
            finished.callbacks = None  # files hold no code
            finished.save(path)

    def _read_eval_set_rows(self, eval_set: Any, n_parts: int) -> Any:
        third = "group" if self._is_ranker else "sample_weight"
        sizes = (3,) if self._is_ranker else (2, 3)
        if not isinstance(eval_set, tuple | list) or len(eval_set) not in sizes:
            told = "(X, y, group)" if self._is_ranker else "(X, y) or (X, y, sample_weight)"
            raise ValueError(f"eval_set: expected {told}")
        more = {third: eval_set[2]} if len(eval_set) == 3 else {}
        return read_rows(eval_set[0], eval_set[1], **more, n_parts=n_parts)


def _pickled_trees(begun: Any) -> bytes | None:
    """Return the trees of each booster of a checkpoint, or None if they are not known."""
    stores = trees_of_boosters(begun)
    return None if stores is None else pickle.dumps(stores)


def _read_checkpoint(local: Any, path: Any) -> Any:
    """Read what a fit with the same parameters left."""
    from spinney.model_file.files import load

    begun = load(path)
    if type(begun) is not type(local):
        raise ValueError(
            f"checkpoint={os.fspath(path)!r}: expected a {type(local).__name__}, got a "
            f"{type(begun).__name__}"
        )
    told, now = begun.get_params(deep=False), local.get_params(deep=False)
    for name, value in now.items():
        if name == "n_estimators" and _only_adds(told, value):
            continue
        if name not in _MAY_DIFFER and repr(told[name]) != repr(value):
            raise ValueError(
                f"checkpoint={os.fspath(path)!r}: expected a fit with {name}={value!r}, got "
                f"{told[name]!r}; delete the file to begin anew"
            )
    return begun


def _only_adds(told: dict[str, Any], n_rounds: Any) -> bool:
    """Whether more rounds are those of before and others: where nothing else decides how many."""
    before = told["n_estimators"]
    are_numbers = isinstance(before, Integral) and isinstance(n_rounds, Integral)
    return are_numbers and told["early_stopping"] is False and before <= n_rounds


def _check_begun(begun: Any, names: Any, random_state: Any, seed: int, path: Any) -> None:
    """Refuse a checkpoint of other columns or of another seed."""
    known = vars(begun).get("feature_names_in_")
    known = None if known is None else list(known)
    now = names if names is not None and all(isinstance(name, str) for name in names) else None
    told = None
    if known != now:
        told = f"the columns {known}, got {now}"
    elif isinstance(random_state, Integral) and seed != fit_seed(begun):
        told = f"random_state={begun.random_state!r}, got {random_state!r}"
    if told is not None:
        raise ValueError(
            f"checkpoint={os.fspath(path)!r}: expected a fit with {told}; delete the file to begin "
            "anew"
        )


def _check_folder(path: Any) -> None:
    """Refuse a place that cannot be written to before anything is learned."""
    folder = Path(path).absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(
            f"checkpoint={os.fspath(path)!r}: expected a file in a folder that can be written to, "
            f"got {os.fspath(folder)!r}"
        )


class GradientBoostingClassifier(  # type: ignore[misc]
    LogProbabilitiesMixin,
    DecisionMixin,
    SetsMixin,
    _DaskBooster,
    ensemble.GradientBoostingClassifier,
):
    """Boosted trees for classes, fitted by all workers of a cluster together.

    Each worker codes its partitions once and keeps them. For every tree the workers add up
    histograms of whole numbers and all take the same decisions: the model does not depend on the
    number of workers or partitions, and is that of `spinney.ensemble.GradientBoostingClassifier`,
    to the bit. A worker that is lost is done without: the others go on from the last finished tree.

    Parameters and attributes are those of `spinney.ensemble.GradientBoostingClassifier`. Not on
    Dask: ``max_bins=None``, `warm_start`, `scoring`, and columns of more than `max_set_categories`
    categories.

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
        """Boost.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Classes. A partition may lack some of them.
        sample_weight : as y, default=None
            Weights of rows: the bin edges, and whole weights as repeated rows, are those of the
            local class.
        eval_set : tuple (X, y) or (X, y, sample_weight), default=None
            Rows to watch instead of a part of X: early stopping looks at them.
        checkpoint : path, default=None
            Where the model is written now and then, and at the end. If the file exists, the fit
            goes on from its trees; one of other rows or parameters is refused.
        out_of_core : bool or "auto", default="auto"
            Whether workers keep the codes of their rows only, a byte a value, and the rows
            themselves in files, of which they read a partition at a time. "auto": if X is a path.

        Returns
        -------
        GradientBoostingClassifier
            The estimator.
        """
        self._boost(X, y, sample_weight, None, eval_set, checkpoint, out_of_core)
        return self


class GradientBoostingRegressor(  # type: ignore[misc]
    IntervalsMixin, _DaskBooster, ensemble.GradientBoostingRegressor
):
    """Boosted trees for numbers, fitted by all workers of a cluster together.

    As `spinney.dask.GradientBoostingClassifier`, with the parameters and attributes of
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
        """Boost.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Targets.
        sample_weight : as y, default=None
            Weights of rows: the bin edges, and whole weights as repeated rows, are those of the
            local class.
        eval_set : tuple (X, y) or (X, y, sample_weight), default=None
            Rows to watch instead of a part of X: early stopping looks at them.
        checkpoint : path, default=None
            Where the model is written now and then, and at the end. If the file exists, the fit
            goes on from its trees; one of other rows or parameters is refused.
        out_of_core : bool or "auto", default="auto"
            Whether workers keep the codes of their rows only, a byte a value, and the rows
            themselves in files, of which they read a partition at a time. "auto": if X is a path.

        Returns
        -------
        GradientBoostingRegressor
            The estimator.
        """
        self._boost(X, y, sample_weight, None, eval_set, checkpoint, out_of_core)
        return self


class GradientBoostingRanker(_DaskBooster, ensemble.GradientBoostingRanker):  # type: ignore[misc]
    """Boosted trees that order the rows of each group, fitted by all workers together.

    As `spinney.dask.GradientBoostingClassifier`, with the parameters and attributes of
    `spinney.ensemble.GradientBoostingRanker`. The rows of a group lie side by side in one
    partition.
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
        """Boost.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Relevance, from 0.
        group : as y
            The group of each row.
        eval_set : tuple (X, y, group), default=None
            Rows to watch instead of a part of X: early stopping looks at them.
        checkpoint : path, default=None
            Where the model is written now and then, and at the end. If the file exists, the fit
            goes on from its trees; one of other rows or parameters is refused.
        out_of_core : bool or "auto", default="auto"
            Whether workers keep the codes of their rows only, a byte a value, and the rows
            themselves in files, of which they read a partition at a time. "auto": if X is a path.

        Returns
        -------
        GradientBoostingRanker
            The estimator.
        """
        self._boost(X, y, None, group, eval_set, checkpoint, out_of_core)
        return self

    def score(self, X: Any, y: Any, *, group: Any = None, k: int | None = None) -> float:  # type: ignore[override]
        """Mean NDCG over the groups that have a relevant row.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y, group : Dask array or series, array, or name of a column of X
            Relevance and group of each row.
        k : int or None, default=None
            Places that count; None: all.

        Returns
        -------
        float
            Between 0 and 1.
        """
        told = self._predict_parts(read_rows(X, y, group=group))
        local: Any = self.to_local()
        local.predict = lambda _: told.X
        return float(local.score(told.X, told.y, group=told.group, k=k))
