"""AdaBoost.R2: weighted median of learners on samples that favour large errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import sklearn.ensemble as sk
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.ensemble._base import BaseEnsemble
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from spinney import _core
from spinney.adaboost._adaboost import Learners
from spinney.conformal.mixins import IntervalsOnRequest
from spinney.data.core_table import core_table, core_targets, read_for_core
from spinney.data.sample_weights import check_weights
from spinney.data.table import fit_table
from spinney.models.forest_store import ForestStore
from spinney.models.tree_ensembles import MedianTrees
from spinney.runtime.progress import progress_hook
from spinney.runtime.rollback import all_or_nothing
from spinney.runtime.threads import effective_n_jobs
from spinney.tree import DecisionTreeRegressor, ExtraTreeRegressor
from spinney.tree.base import encode_numbers
from spinney.tree.options import tree_options

__all__ = ["AdaBoostRegressor"]

_NATIVE = (DecisionTreeRegressor, ExtraTreeRegressor)
_TINY = np.finfo(np.float64).eps


class AdaBoostRegressor(IntervalsOnRequest, Learners, sk.AdaBoostRegressor):
    """AdaBoost.R2: learners on samples of the rows that favour large errors.

    Each round draws rows in proportion to their weights and fits a learner to them. Rows with small
    errors lose weight. The prediction is the weighted median of the learners.

    Parameters
    ----------
    estimator : estimator, default=None
        The weak learner; None means a tree of depth 3. Spinney's trees run in the core, on columns
        that are encoded once, and support categories and missing values. Any other regressor works
        too.
    n_estimators : int, default=50
        Largest number of rounds.
    learning_rate : float, default=1.0
        Factor of the weight of each learner.
    loss : {"linear", "square", "exponential"}, default="linear"
        Loss of an error relative to the largest error of the round.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Categorical columns, for Spinney's trees: "from_dtype" uses the dtypes of a frame; otherwise
        a mask, indices or names.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws of rows and of the learners.
    n_jobs : int, default=None
        Number of threads for Spinney's trees; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs.
    callbacks : callable or list of callables, default=None
        Called during fit with (rounds done, all rounds).

    Attributes
    ----------
    estimator_, estimators_, estimator_weights_, estimator_errors_, feature_importances_
        As in scikit-learn.
    categories_ : list of (ndarray or None)
        The categories of each column, None where it is numeric; with Spinney's trees only.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import AdaBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AdaBoostRegressor(random_state=0).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.4)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **sk.AdaBoostRegressor._parameter_constraints,
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "callbacks": [None, callable, list, tuple],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        loss: str = "linear",
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            loss=loss,
            random_state=random_state,
        )
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the learners, one per round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows. With Spinney's trees, missing values and categorical columns need no
            preparation.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Initial row weights; None means equal weights.

        Returns
        -------
        AdaBoostRegressor
            Itself.
        """
        with all_or_nothing(self):
            self._drop_learners()
            BaseEnsemble._validate_estimator(self, default=DecisionTreeRegressor(max_depth=3))
            base = self.estimator_
            if type(base) in _NATIVE and base.ccp_alpha == 0:
                return self._fit_native(base, X, y, sample_weight)
            if sample_weight is not None:
                sample_weight = check_weights(sample_weight, _num_samples(X))
            super().fit(X, y, sample_weight)
            return self

    def _validate_estimator(self) -> None:
        """Do nothing, because `fit` has already set the learner."""

    def _fit_native(self, base: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        n_threads = effective_n_jobs(self.n_jobs)
        base._validate_params()
        declared = base.categorical_features
        if isinstance(declared, str) and declared == "from_dtype":
            declared = self.categorical_features
        table, schema = fit_table(self, X, y, categorical_features=declared)
        n_rows = table.n_rows
        y = encode_numbers(base, column_or_1d(y, warn=True))
        check_consistent_length(np.empty((n_rows, 0)), y)
        weights = check_weights(sample_weight, n_rows).copy()
        if not weights.sum() > 0:
            raise ValueError("sample_weight leaves no row of positive weight")
        weights /= weights.sum()
        options = tree_options(base, schema, n_rows, n_outputs=1)
        inner_values = base.criterion == "absolute_error" or base.monotonic_cst is not None
        store = ForestStore(
            base.criterion,
            [],
            1,
            inner_values,
            schema.n_categories,
        )
        rows = core_table(table, schema)
        prepared = _core.PreparedTable(rows, options.random_splits, n_threads, False)
        targets = core_targets(y, [], None)
        self.estimator_weights_ = np.zeros(self.n_estimators)
        self.estimator_errors_ = np.ones(self.n_estimators)
        random_state = check_random_state(self.random_state)
        out_of_bag = _core.OutOfBag()
        hook = progress_hook(self)
        has_weight = weights > 0
        seeds = []
        for t in range(self.n_estimators):
            # Rows with positive initial weight keep a positive weight.
            weights = np.where(has_weight, np.maximum(weights, _TINY), 0.0)
            seeds.append(int(random_state.randint(np.iinfo(np.int32).max)))
            drawn = random_state.choice(n_rows, size=n_rows, replace=True, p=weights)
            counts = np.bincount(drawn, minlength=n_rows).astype(np.uint32)
            _core.grow_forest(
                store.core,
                prepared,
                targets,
                _core.ForestOptions(tree=options, n_threads=n_threads),
                None,
                counts[np.newaxis],
                None,
                out_of_bag,
                None,
                np.array([seeds[-1]], dtype=np.uint64),
            )
            predicted = np.zeros((n_rows, 1))
            _core.add_rounds(store.core, rows, 1, t, t + 1, n_threads, predicted)
            losses = self._losses(np.abs(predicted - y)[:, 0], has_weight)
            error = float(weights[has_weight] @ losses[has_weight])
            if hook is not None:
                hook(t + 1, self.n_estimators)
            if error <= 0:
                self.estimator_weights_[t], self.estimator_errors_[t] = 1.0, 0.0
                break
            if error >= 0.5:
                if t > 0:  # the first learner is kept, with weight 0
                    store.core.truncate(t)
                break
            beta = error / (1 - error)
            self.estimator_weights_[t] = self.learning_rate * np.log(1 / beta)
            self.estimator_errors_[t] = error
            weights = weights * beta ** ((1 - losses) * self.learning_rate)
            weights /= weights.sum()
        self._seeds = seeds
        self.replace_model(MedianTrees(store, schema, self.estimator_weights_))
        return self

    def fitted_model(self) -> MedianTrees:
        """Return the fitted model as an immutable value, without the estimator's methods.

        Returns
        -------
        MedianTrees
            The trees, with the present values of `estimator_weights_`.
        """
        return replace(super().fitted_model(), weights=self.estimator_weights_)

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        if "_store" not in state:
            return state
        state = dict(state)
        store, schema = state.pop("_store"), state.pop("_schema")
        return {**state, "_model": MedianTrees(store, schema, state["estimator_weights_"])}

    def _losses(self, errors: Any, has_weight: Any) -> Any:
        largest = errors[has_weight].max()
        shares = errors / largest if largest > 0 else errors
        if self.loss == "square":
            return shares**2
        return 1 - np.exp(-shares) if self.loss == "exponential" else shares

    # ------------------------------------------------------------------ predictions

    def _predictions(self, X: Any) -> Any:
        """Return the predictions of each learner, (n_rows, n_learners)."""
        if not self._is_native():
            X = self._check_X(X)
            return np.array([estimator.predict(X) for estimator in self.estimators_]).T
        model = self.fitted_model()
        rows = read_for_core(self, X, model.schema)
        return model.raw_scores(rows, effective_n_jobs(self.n_jobs))

    def _median(self, predictions: Any, n: int) -> Any:
        """Return the weighted median of the first n learners.

        It is the smallest prediction such that half of the weight is at or below it.
        """
        predicted = predictions[:, :n]
        order = np.argsort(predicted, axis=1)
        below = np.cumsum(self.estimator_weights_[order], axis=1)
        rank = (below >= 0.5 * below[:, -1:]).argmax(axis=1)
        rows = np.arange(len(predicted))
        return predicted[rows, order[rows, rank]]

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict regression targets.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The weighted median of the learners' predictions.
        """
        check_is_fitted(self)
        return np.asarray(self._median(self._predictions(X), len(self.estimators_)))

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Predict after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Yields
        ------
        ndarray of shape (n_rows,)
            Predictions of the first 1, 2, … learners.
        """
        check_is_fitted(self)
        predictions = self._predictions(X)
        for n in range(1, predictions.shape[1] + 1):
            yield self._median(predictions, n)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the coefficient of determination after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The true targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights; None means equal weights.

        Yields
        ------
        float
            Score of the first 1, 2, … learners.
        """
        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.estimator is None or type(self.estimator) in _NATIVE
        return tags
