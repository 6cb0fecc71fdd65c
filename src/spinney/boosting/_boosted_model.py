"""Methods of fitted boosters: raw scores, leaves, importances."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from spinney import _core
from spinney.data.core_table import read_for_core
from spinney.models.boosted_trees import BoostedTrees, ScoresInTraining
from spinney.models.methods import ModelMethods, require_fitted
from spinney.runtime.threads import effective_n_jobs

__all__ = ["BoostedModel"]


class BoostedModel(ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of the boosters, without their fit; not to be used directly."""

    n_features_in_: int
    _model: BoostedTrees

    @property
    def n_estimators_(self) -> int:
        """Number of rounds of the model; with early stopping, those up to the best round."""
        check_is_fitted(self)
        return self._model.n_rounds

    @property
    def n_iter_(self) -> int:
        """Number of rounds of the model, as `n_estimators_`."""
        return self.n_estimators_

    @property
    def init_raw_(self) -> NDArray[np.float64]:
        """Raw scores before the first round."""
        check_is_fitted(self)
        return self._model.baseline

    def __sklearn_is_fitted__(self) -> bool:
        model = vars(self).get("_model")
        return isinstance(model, ScoresInTraining) or (model is not None and model.n_rounds > 0)

    def _read_rows(self, X: Any) -> Any:
        require_fitted(self)
        return read_for_core(self, X, self._model.schema)

    def _raw(self, X: Any) -> NDArray[np.float64]:
        """Return the raw scores, (n_rows, n_scores)."""
        model = vars(self).get("_model")
        if isinstance(model, ScoresInTraining):
            return model.current()
        rows = self._read_rows(X)
        return self._model.raw_scores(rows, effective_n_jobs(self.n_jobs))

    def _staged_raw(self, X: Any) -> Iterator[NDArray[np.float64]]:
        rows = self._read_rows(X)
        return self._model.staged_raw_scores(rows, effective_n_jobs(self.n_jobs))

    def scorer(self) -> Any:
        """Return a function that predicts one row in a few microseconds.

        Returns
        -------
        callable
            It takes one row: a contiguous float64 array of shape ``(n_features_in_,)`` with NaN for
            missing values. It checks nothing else. It returns an array of the class probabilities,
            or of the predicted number.
        """
        check_is_fitted(self)
        model = self._model
        if model.schema.has_categories:
            raise ValueError("scorer: expected numeric columns only, got categorical ones")
        if model.levels:
            raise ValueError("scorer: expected one number to predict, got several quantiles")
        if model.link == "constant":
            raise ValueError("scorer: expected several classes, got one")
        if model.n_targets > 1 and model.link != "identity":
            raise ValueError("scorer: expected one number to predict, got several outputs")
        return _core.RowScorer(
            model.store.core,
            model.baseline.tolist(),
            model.n_rounds * model.n_boosters,
            model.link,
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
            Indices of leaves; with more than two classes, the last axis is the class.
        """
        rows = self._read_rows(X)
        store = self._model.store
        out = np.empty((rows.n_rows, len(store)), dtype=np.int64)
        store.core.apply(rows, effective_n_jobs(self.n_jobs), out)
        per_round = self._model.trees_per_round
        return out if per_round == 1 else out.reshape(len(out), -1, per_round)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each column in the decrease of the objective by all splits."""
        check_is_fitted(self)
        total = np.zeros(self.n_features_in_)
        for tree in self._model.trees():
            gain = tree.compute_feature_importances(normalize=False)  # per unit of weight
            total += gain * tree.weighted_n_node_samples[0]
        return total / total.sum() if total.sum() > 0 else total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
