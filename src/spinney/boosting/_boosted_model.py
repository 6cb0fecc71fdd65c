"""What a fitted booster answers: scores, leaves, importances."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from spinney import _core
from spinney.data.core_table import read_for_core
from spinney.data.table import Schema
from spinney.models.forest_store import ForestStore
from spinney.models.methods import ModelMethods
from spinney.runtime.threads import effective_n_jobs

__all__ = ["BoostedModel"]


class BoostedModel(ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of the boosters, without their fit; not to be used directly."""

    n_features_in_: int
    _schema: Schema
    _store: ForestStore
    _baseline: NDArray[np.float64]
    _n_rounds: int

    @property
    def n_estimators_(self) -> int:
        """Rounds that the model has: those up to the best one if it stopped early."""
        check_is_fitted(self)
        return self._n_rounds

    @property
    def n_iter_(self) -> int:
        """The same as `n_estimators_`."""
        return self.n_estimators_

    @property
    def init_raw_(self) -> NDArray[np.float64]:
        """Raw scores before the first round."""
        check_is_fitted(self)
        return self._baseline

    def __sklearn_is_fitted__(self) -> bool:
        return "_store" in vars(self) and self._n_rounds > 0

    def _read(self, X: Any) -> Any:
        check_is_fitted(self)
        return read_for_core(self, X, self._schema)

    def _raw(self, X: Any) -> Any:
        """Raw scores, (n_rows, n_scores)."""
        rows = self._read(X)
        scores = np.empty((rows.n_rows, self._n_scores))
        scores[:] = self._baseline
        _core.add_rounds(
            self._store.core,
            rows,
            self._trees_per_round,
            0,
            self._n_rounds * self._n_boosters,
            effective_n_jobs(self.n_jobs),
            scores,
        )
        return scores

    def _staged_raw(self, X: Any) -> Iterator[Any]:
        rows = self._read(X)
        scores = np.empty((rows.n_rows, self._n_scores))
        scores[:] = self._baseline
        for t in range(self._n_rounds):
            _core.add_rounds(
                self._store.core,
                rows,
                self._trees_per_round,
                t * self._n_boosters,
                (t + 1) * self._n_boosters,
                effective_n_jobs(self.n_jobs),
                scores,
            )
            yield scores.copy()

    @abstractmethod
    def _link(self) -> str:
        """Name of the way from raw scores to predictions."""

    def scorer(self) -> Any:
        """Prepare the model for one row at a time, at a few microseconds each.

        Returns
        -------
        callable
            Takes one row, a contiguous float64 array of shape ``(n_features_in_,)`` with NaN for
            what is missing; nothing else about it is checked. Returns an array: the class
            probabilities, or the one number that is predicted.
        """
        check_is_fitted(self)
        if self._schema.has_categories:
            raise ValueError("scorer: expected a model of numbers only, got one with categories")
        if self._levels:
            raise ValueError("scorer: expected one number to predict, got several quantiles")
        return _core.RowScorer(
            self._store.core,
            self._baseline.tolist(),
            self._n_rounds * self._n_boosters,
            self._link(),
        )

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the index of the leaf that each row falls into, in each tree.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_estimators), or (n_rows, n_estimators, n_classes)
            Indices of nodes; the last axis only with more than two classes.
        """
        rows = self._read(X)
        out = np.empty((rows.n_rows, len(self._store)), dtype=np.int64)
        self._store.core.apply(rows, effective_n_jobs(self.n_jobs), out)
        per_round = self._trees_per_round
        return out if per_round == 1 else out.reshape(len(out), -1, per_round)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each column in what all questions took off the objective."""
        check_is_fitted(self)
        total = np.zeros(self.n_features_in_)
        for t in range(len(self._store)):
            tree = self._store.tree(t)
            gain = tree.compute_feature_importances(normalize=False)  # by unit of weight
            total += gain * tree.weighted_n_node_samples[0]
        return total / total.sum() if total.sum() > 0 else total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
