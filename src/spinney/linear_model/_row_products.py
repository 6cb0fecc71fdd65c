"""Predictions of linear models that depend on their own row alone, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney.data.sklearn_versions import validate_data
from spinney.models.linear import LinearModel
from spinney.models.outcomes import LargestScore, Numbers, Sides, Softmax, TwoClasses

__all__ = ["RowwiseDecision", "RowwisePredictions"]

# The state of an estimator is scikit-learn's attributes, such as `coef_` and `intercept_`, because
# users may set them by hand. `fitted_model` therefore builds a new value for each call.


class RowwisePredictions:
    """Mixin that replaces the prediction of scikit-learn's linear regressors.

    It comes before scikit-learn's class among the bases.
    """

    coef_: Any
    intercept_: Any

    def fitted_model(self) -> LinearModel:
        """Return the fitted model as a value.

        Returns
        -------
        LinearModel
            Its method `raw_scores` returns predictions of shape (n_rows, n_targets).
        """
        check_is_fitted(self)
        flat = np.ndim(self.coef_) == 1
        return LinearModel.from_attributes(self.coef_, self.intercept_, Numbers(flat))

    def _decision_function(self, X: Any) -> Any:
        model = self.fitted_model()
        X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], reset=False)
        scores = _scores(self, model, X)
        return scores[:, 0] if self.coef_.ndim == 1 else scores


class RowwiseDecision:
    """Mixin that replaces the decision function of scikit-learn's linear classifiers.

    It comes before scikit-learn's class among the bases.
    """

    coef_: Any
    intercept_: Any
    classes_: Any

    def fitted_model(self) -> LinearModel:
        """Return the fitted model as a value.

        Returns
        -------
        LinearModel
            Its method `raw_scores` returns scores of shape (n_rows, 1) for two classes, else of
            shape (n_rows, n_classes); its `outcome` has the classes.
        """
        check_is_fitted(self)
        n_scores = self.coef_.shape[0] if self.coef_.ndim > 1 else 1
        outcome = self._outcome(n_scores)
        return LinearModel.from_attributes(self.coef_, self.intercept_, outcome)

    def _outcome(self, n_scores: int) -> Sides | LargestScore | TwoClasses | Softmax:
        return (Sides if n_scores == 1 else LargestScore)(self.classes_)

    def decision_function(self, X: Any) -> Any:
        """Return the signed distances to the hyperplanes, times the norm of `coef_`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Scores; for two classes the score of the second.
        """
        model = self.fitted_model()
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        scores = _scores(self, model, X)
        return scores.ravel() if scores.shape[1] == 1 else scores


def _scores(estimator: Any, model: LinearModel, X: Any) -> Any:
    """Return scores, in single precision if X and the coefficients are."""
    dtype = np.result_type(X.dtype, estimator.coef_.dtype, np.float32)
    scores = model.raw_scores(X, n_jobs=getattr(estimator, "n_jobs", None))
    return scores.astype(dtype, copy=False)
