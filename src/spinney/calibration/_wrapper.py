"""Base class of estimators that wrap a model and use held-out rows."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, train_test_split
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from spinney.conformal.mixins import HeldOut, find_held_out_rows
from spinney.data.sklearn_versions import check_sample_weight, safe_indexing
from spinney.data.table import check_rows, column_of
from spinney.models.methods import ModelMethods

__all__ = ["Wrapper", "fit_on", "group_codes"]


def fit_on(model: Any, X: Any, y: Any, weights: Any, rows: Any = None) -> Any:
    """Return a copy of a model, fitted on a selection of rows with their weights."""
    model = clone(model)
    if rows is not None:
        X, y = safe_indexing(X, rows), safe_indexing(y, rows)
        weights = None if weights is None else weights[rows]
    if weights is None:
        return model.fit(X, y)
    if "sample_weight" not in signature(model.fit).parameters:
        raise ValueError(f"sample_weight: {type(model).__name__}.fit does not accept it")
    return model.fit(X, y, sample_weight=weights)


def group_codes(X: Any, column: Any, known: Any = None) -> tuple[Any, Any]:
    """Return each row's code of its value in a column, -1 if unknown, and all values."""
    values = np.array([str(value) for value in column_of(X, column)])
    if known is None:
        known = np.unique(values)
    indexes = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[indexes] == values, indexes, -1), known


class Wrapper(ModelMethods, BaseEstimator):
    """Base class of estimators that wrap another one; not to be used directly."""

    estimator: Any
    cv: Any
    random_state: Any

    def _model(self) -> Any:
        raise NotImplementedError

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Check the arguments of fit, and drop rows of weight zero."""
        check_rows(self, X, y, reset=True)
        X, y = indexable(X, y)
        weights = None
        if sample_weight is not None:
            weights = check_sample_weight(
                sample_weight, np.empty((_num_samples(X), 0)), dtype=np.float64,
                ensure_non_negative=True,
            )  # fmt: skip
            kept = np.flatnonzero(weights)
            if not len(kept):
                raise ValueError("sample_weight: expected a positive weight, got zeros only")
            # Custom folds refer to rows by index, so that no row may be dropped.
            if len(kept) < len(weights) and isinstance(self.cv, int | str | np.integer):
                X, y = safe_indexing(X, kept), safe_indexing(y, kept)
                weights = weights[kept]
        return X, y, weights

    def _check_method(self, known: tuple[str, ...]) -> None:
        if not isinstance(self.method, str) or self.method not in known:  # type: ignore[attr-defined]
            names = ", ".join(map(repr, known))
            raise ValueError(f"method: expected one of {names}, got {self.method!r}")  # type: ignore[attr-defined]

    def _own_rows(self, X: Any, y: Any, weights: Any) -> tuple[Any, HeldOut | None]:
        """Fit the model, and return it with the rows that it held out by itself, or None."""
        model = fit_on(self._model(), X, y, weights)
        # Only the model itself counts, not the last step of a pipeline: steps before it may have
        # used the targets of the rows that the last step holds out.
        return model, find_held_out_rows(model)

    def _folds(self, X: Any, y: Any) -> list[tuple[Any, Any]]:
        """Return training and test rows of the folds; each row is a test row once."""
        n_rows = _num_samples(X)
        if isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool):
            if self.cv < 2:
                raise ValueError(f"cv: expected at least 2 folds, got {self.cv}")
            n_folds = min(int(self.cv), n_rows)
            if n_folds < 2:
                raise ValueError(f"X: expected at least 2 samples, got n_samples = {n_rows}")
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            kind: Any = KFold
            if is_classifier(self):
                fewest = np.unique(y, return_counts=True)[1].min()
                kind = StratifiedKFold if fewest >= n_folds else KFold
            return list(kind(n_folds, shuffle=True, random_state=seed).split(np.empty(n_rows), y))
        folds = list(check_cv(self.cv, y, classifier=is_classifier(self)).split(X, y))
        tested = np.concatenate([test for _, test in folds])
        if len(tested) != n_rows or len(np.unique(tested)) != n_rows:
            raise ValueError("cv: each row must be in the test rows of exactly one fold")
        return folds

    def _split(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the indexes of the training rows and of the held-out rows, ascending."""
        n_rows = _num_samples(X)
        if n_rows < 4:
            raise ValueError(f"X: expected at least 4 samples to split, got n_samples = {n_rows}")
        stratify = None
        if is_classifier(self):
            counts = np.unique(y, return_counts=True)[1]
            stratify = y if counts.min() >= 4 and len(counts) * 2 < n_rows // 4 else None
        train, held = train_test_split(
            np.arange(n_rows),
            test_size=self.test_size,  # type: ignore[attr-defined]
            stratify=stratify,
            random_state=check_random_state(self.random_state),
        )
        return np.sort(train), np.sort(held)

    def predict(self, X: Any) -> Any:
        """Predict with the model inside.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Predictions.
        """
        check_is_fitted(self)
        check_rows(self, X, reset=False)
        return self.estimator_.predict(X)

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._model())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags
