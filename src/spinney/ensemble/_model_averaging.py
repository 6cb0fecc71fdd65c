"""Bayesian model averaging: models weighted by their posterior probabilities."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context, clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import Bunch, get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from spinney.conformal.mixins import HeldOut, IntervalMixin, SetMixin, subsample_rows
from spinney.data.labels import encode_labels
from spinney.data.table import check_rows
from spinney.models.methods import ModelMethods

__all__ = ["BayesianModelAveragingClassifier", "BayesianModelAveragingRegressor"]

_TINY = 1e-15
_PARAMETERS = """estimators : list of (str, estimator)
        The models, each with a name.
    method : {{"auto", "bic", "cv"}}, default="auto"
        How the weights are computed. "bic": from the likelihood of the training data and the number
        of parameters, exp(−BIC/2), for models whose number of parameters is known ({known}, or any
        with an attribute or method ``n_parameters``). "cv": from the likelihood of the held-out
        rows in cross-validation. "auto": "bic" if it is available for all models, else "cv".
    prior : array-like of shape (n_models,), default=None
        Prior probabilities of the models, up to a factor; None means equal probabilities.
    cv : int, splitter or iterable, default=5
        Folds for ``method="cv"``.
    n_jobs : int, default=None
        Number of processes of the cross-validation, as in scikit-learn."""


class _ModelAveraging(ModelMethods, _BaseComposition):
    """Base class of both model averaging estimators."""

    _parameter_constraints: dict[str, Any] = {
        "estimators": [list],
        "method": [StrOptions({"auto", "bic", "cv"})],
        "prior": ["array-like", None],
        "cv": ["cv_object"],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        estimators: Any,
        *,
        method: str = "auto",
        prior: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.method = method
        self.prior = prior
        self.cv = cv
        self.n_jobs = n_jobs

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, including those of the models as ``name__parameter``."""
        return dict(self._get_params("estimators", deep=deep))

    def set_params(self, **params: Any) -> Any:
        """Set parameters, including those of the models as ``name__parameter``."""
        self._set_params("estimators", **params)
        return self

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> Any:
        """Fit the models and compute their weights.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows; the models get them unchanged.
        y : array-like of shape (n_rows,)
            The targets.

        Returns
        -------
        estimator
            Itself.
        """
        if not self.estimators:
            raise ValueError("estimators: expected at least one (name, estimator), got none")
        names = [name for name, _ in self.estimators]
        self._validate_names(names)
        check_rows(self, X, y, reset=True)
        y = self._encode(y)
        prior = np.ones(len(names)) if self.prior is None else np.asarray(self.prior, dtype=float)
        if prior.shape != (len(names),) or not (prior >= 0).all() or not prior.sum() > 0:
            raise ValueError(
                f"prior: expected {len(names)} non-negative weights with a positive sum, got "
                f"{self.prior!r}"
            )
        self.estimators_ = [clone(model).fit(X, y) for _, model in self.estimators]
        self.named_estimators_ = Bunch(**dict(zip(names, self.estimators_, strict=True)))
        sizes = [_n_parameters(model) for model in self.estimators_]
        self.method_ = self.method
        if self.method == "auto":
            self.method_ = "cv" if None in sizes else "bic"
        if self.method_ == "bic" and None in sizes:
            unknown = names[sizes.index(None)]
            raise ValueError(
                f"method='bic': the number of parameters of {unknown!r} is not known; use "
                "method='cv' or give the model an attribute n_parameters"
            )
        evidence, held_out = [], []
        for model, size in zip(self.estimators_, sizes, strict=True):
            if self.method_ == "bic":
                likelihood = self._log_likelihood(y, self._predict_with(model, X))
                n = (size or 0) + self._n_likelihood_parameters
                evidence.append(likelihood - 0.5 * n * np.log(len(y)))
            else:
                predicted = cross_val_predict(
                    clone(model),
                    X,
                    y,
                    cv=check_cv(self.cv, y, classifier=self._method == "predict_proba"),
                    n_jobs=self.n_jobs,
                    method=self._method,
                )
                evidence.append(self._log_likelihood(y, predicted))
                held_out.append(np.asarray(predicted, dtype=np.float64))
        self.log_evidence_ = np.array(evidence)
        with np.errstate(divide="ignore"):
            logs = np.log(prior / prior.sum()) + self.log_evidence_
        weights = np.exp(logs - logs.max())
        self.weights_ = weights / weights.sum()
        self._store_noise(X, y)
        self._held_out = None
        if held_out and np.isfinite(self.weights_).all():
            # The weights depend on all rows, but they are so few that the bias is negligible.
            predicted = np.tensordot(self.weights_, np.array(held_out), axes=1)
            rows = subsample_rows(len(y))
            self._held_out = HeldOut(
                "rows of folds",
                self._held_out_targets(y)[rows],
                predicted[rows],
                rows=np.arange(len(y))[rows],
            )
        return self

    def _reason_without_rows(self) -> str:
        return " (available with method='cv')"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        models = [get_tags(model).input_tags for _, model in self.estimators]
        tags.input_tags.sparse = all(model.sparse for model in models)
        tags.input_tags.allow_nan = all(model.allow_nan for model in models)
        return tags

    _method: str
    _n_likelihood_parameters = 0  # parameters of the likelihood, in addition to the model's

    def _predict_with(self, model: Any, X: Any) -> Any:
        return getattr(model, self._method)(X)

    def _encode(self, y: Any) -> Any:
        raise NotImplementedError

    def _log_likelihood(self, y: Any, predicted: Any) -> float:
        raise NotImplementedError

    def _held_out_targets(self, y: Any) -> Any:
        """Return the targets in the form of `HeldOut`: codes for classes."""
        return y

    def _store_noise(self, X: Any, y: Any) -> None:
        """Set the noise variances of a regression."""

    def _predict_all(self, X: Any) -> Any:
        check_is_fitted(self)
        check_rows(self, X, reset=False)
        return np.array([self._predict_with(model, X) for model in self.estimators_])


class BayesianModelAveragingClassifier(SetMixin, ClassifierMixin, _ModelAveraging, BaseEstimator):
    __doc__ = f"""Classification by several models, weighted by posterior probability.

    Parameters
    ----------
    {
        _PARAMETERS.format(
            known="unpenalised logistic regression, Gaussian naive Bayes, the constant"
        )
    }

    Attributes
    ----------
    estimators_, named_estimators_ : list, Bunch
        The fitted models.
    weights_ : ndarray of shape (n_models,)
        Posterior probabilities of the models; they sum to one.
    method_ : str
        The method that was used: "bic" or "cv".
    log_evidence_ : ndarray of shape (n_models,)
        −BIC/2, or the log-likelihood of the held-out rows.
    classes_ : ndarray of shape (n_classes,)
        The classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from spinney.ensemble import BayesianModelAveragingClassifier
    >>> from spinney.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> models = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=2))]
    >>> averaged = BayesianModelAveragingClassifier(models).fit(X, y)
    >>> averaged.method_
    'cv'
    """

    _method = "predict_proba"

    def _encode(self, y: Any) -> Any:
        y = column_or_1d(y, warn=True)
        if y.dtype.kind in "fc":
            check_array(y, ensure_2d=False, input_name="y", estimator=self)
        check_classification_targets(y)
        self.classes_, self._codes = encode_labels(np.asarray(y))
        return y

    def _held_out_targets(self, y: Any) -> Any:
        return np.asarray(self._codes).astype(np.int32)

    def _log_likelihood(self, y: Any, predicted: Any) -> float:
        own = predicted[np.arange(len(predicted)), self._codes]
        return float(np.log(np.maximum(own, _TINY)).sum())

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The weighted mean of the models' probabilities.
        """
        predicted = self._predict_all(X)
        return np.asarray(np.tensordot(self.weights_, predicted, axes=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The most probable class.
        """
        predicted = self.predict_proba(X)
        return np.asarray(self.classes_[predicted.argmax(axis=1)])

    def predict_variance(self, X: Any) -> Any:
        """Decompose the variance of the class indicators within and between models.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        Bunch
            ``total`` = ``within`` + ``between``, each (n_rows, n_classes): p (1 − p) of the mean,
            mean of p (1 − p), and variance of p over the models.
        """
        predicted = self._predict_all(X)
        return _decompose_variance(self.weights_, predicted, lambda p: p * (1 - p))


class BayesianModelAveragingRegressor(
    IntervalMixin, RegressorMixin, _ModelAveraging, BaseEstimator
):
    __doc__ = f"""Regression by several models, weighted by posterior probability.

    Errors are assumed to be normal, with a variance for each model.

    Parameters
    ----------
    {_PARAMETERS.format(known="unpenalised linear regression, the constant")}

    Attributes
    ----------
    estimators_, named_estimators_ : list, Bunch
        The fitted models.
    weights_ : ndarray of shape (n_models,)
        Posterior probabilities of the models; they sum to one.
    method_ : str
        The method that was used: "bic" or "cv".
    log_evidence_ : ndarray of shape (n_models,)
        −BIC/2, or the log-likelihood of the held-out rows.
    noise_variances_ : ndarray of shape (n_models,)
        Mean squared error of each model: on the training rows with "bic", on held-out rows with
        "cv".

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from spinney.ensemble import BayesianModelAveragingRegressor, RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> models = [("line", LinearRegression()), ("forest", RandomForestRegressor(random_state=0))]
    >>> averaged = BayesianModelAveragingRegressor(models).fit(X, y)
    >>> bool(averaged.weights_[0] > averaged.weights_[1])
    True
    """

    _method = "predict"
    _n_likelihood_parameters = 1  # the variance of the errors

    def _encode(self, y: Any) -> Any:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        self._noise: list[float] = []
        return column_or_1d(y, warn=True)

    def _log_likelihood(self, y: Any, predicted: Any) -> float:
        floor = 1e-20 * max(float(np.var(y)), _TINY)
        variance = max(float(np.mean((y - predicted) ** 2)), floor)
        self._noise.append(variance)
        return -0.5 * len(y) * (np.log(2 * np.pi * variance) + 1)

    def _store_noise(self, X: Any, y: Any) -> None:
        self.noise_variances_ = np.array(self._noise)
        del self._noise

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict regression targets.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The weighted mean of the models' predictions.
        """
        predicted = self._predict_all(X)
        return np.asarray(self.weights_ @ predicted)

    def predict_variance(self, X: Any) -> Any:
        """Decompose the predictive variance within and between models.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        Bunch
            ``total`` = ``within`` + ``between``, each (n_rows,): the mean noise variance of the
            models, and the variance of their predictions.
        """
        predicted = self._predict_all(X)
        noise = np.broadcast_to(self.noise_variances_[:, np.newaxis], predicted.shape)
        return _decompose_variance(self.weights_, predicted, lambda _: noise)


def _decompose_variance(weights: Any, predicted: Any, variance: Any) -> Any:
    mean = np.tensordot(weights, predicted, axes=1)
    within = np.tensordot(weights, variance(predicted), axes=1)
    between = np.tensordot(weights, (predicted - mean) ** 2, axes=1)
    return Bunch(total=within + between, within=within, between=between)


def _n_parameters(model: Any) -> int | None:
    """Return the number of fitted parameters of a model, or None if unknown."""
    n_parameters = getattr(model, "n_parameters", None)
    if n_parameters is not None:
        return int(n_parameters() if callable(n_parameters) else n_parameters)
    kind = type(model).__name__
    if kind == "DummyRegressor":
        return 1
    if kind == "DummyClassifier":
        return len(model.classes_) - 1
    if kind == "GaussianNB":
        return int(model.theta_.size + model.var_.size + len(model.classes_) - 1)
    free = kind == "LinearRegression" or (
        kind == "LogisticRegression" and (model.penalty is None or np.isinf(model.C))
    )
    if not free:
        return None
    return int(np.size(model.coef_) + np.size(model.intercept_) * bool(model.fit_intercept))
