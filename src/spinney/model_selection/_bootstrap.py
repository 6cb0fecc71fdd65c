"""The bootstrap: variation of a model and its error over resamples of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import indexable

from spinney.data.sklearn_versions import safe_indexing
from spinney.model_selection.refits import fit_again, seeds_for

__all__ = ["Bootstrap", "bootstrap"]


@dataclass(frozen=True)
class Bootstrap:
    """Result of a bootstrap.

    Attributes
    ----------
    predictions : ndarray of shape (n_resamples, n_new)
        Predictions of `X_new` by each refitted model; empty without `X_new`.
    parameters : ndarray of shape (n_resamples, n_parameters)
        Values of `parameters` of each model; empty without `parameters`.
    apparent_error : float
        Training error of the model fitted to all rows; too low.
    out_of_bag_error : float
        Error of models on the rows that are not in their samples; slightly too high.
    no_information_error : float
        Expected error of the model if targets did not depend on the rows.
    overfitting : float
        Relative overfitting rate: (out-of-bag − apparent) / (no-information − apparent), clipped
        to 0 to 1.
    error_632 : float
        0.368 apparent + 0.632 out-of-bag error.
    error_632_plus : float
        The same with a weight that grows with overfitting, up to the out-of-bag error.
    """

    predictions: NDArray[Any]
    parameters: NDArray[np.float64]
    apparent_error: float
    out_of_bag_error: float
    no_information_error: float
    overfitting: float
    error_632: float
    error_632_plus: float

    def interval(self, level: float = 0.9, of: str = "predictions") -> NDArray[np.float64]:
        """Return percentile intervals.

        Parameters
        ----------
        level : float, default=0.9
            Share of the refitted models inside, between 0 and 1.
        of : {"predictions", "parameters"}, default="predictions"
            The values to return intervals for.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper ends.
        """
        if not 0 < level < 1:
            raise ValueError(f"level: expected a number between 0 and 1, got {level!r}")
        if of not in ("predictions", "parameters"):
            raise ValueError(f"of: expected 'predictions' or 'parameters', got {of!r}")
        tail = (1 - level) / 2
        return np.quantile(getattr(self, of), [tail, 1 - tail], axis=0).T


def bootstrap(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_resamples: int = 200,
    X_new: Any = None,
    parameters: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callbacks: Any = None,
) -> Bootstrap:
    """Refit a model to samples drawn with replacement, and estimate its error.

    Parameters
    ----------
    estimator : estimator
        A classifier (errors are shares of wrong classes) or a regressor (squared errors).
    X : array or frame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        The targets.
    n_resamples : int, default=200
        Number of samples, each with as many rows as X.
    X_new : array or frame, default=None
        Rows to predict with each model.
    parameters : callable or str, default=None
        The values to collect from each fitted model: the name of an attribute (``"coef_"``), or a
        function of the model that returns numbers.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples.
    n_jobs : int, default=None
        Number of threads; it does not change the result.
    verbose : int, default=0
        1 shows a progress bar.
    callbacks : callable or list of callables, default=None
        Called with (done, n_resamples).

    Returns
    -------
    Bootstrap
        Predictions, parameters and errors.

    References
    ----------
    Efron and Tibshirani, "Improvements on cross-validation: the .632+ bootstrap method", 1997.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from spinney.model_selection import bootstrap
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = bootstrap(LinearRegression(), X, y, parameters="coef_", random_state=0)
    >>> bool(result.apparent_error < result.error_632_plus < result.out_of_bag_error)
    True
    >>> low, high = result.interval(0.95, of="parameters")[2]  # the body mass index
    >>> bool(0 < low < high)
    True
    """
    if n_resamples < 2:
        raise ValueError(f"n_resamples: expected at least 2, got {n_resamples}")
    X, y = indexable(X, y)
    targets = np.asarray(y)
    n_rows = len(targets)
    if n_rows < 2:
        raise ValueError(f"X: expected at least 2 rows, got {n_rows}")
    is_classification = is_classifier(estimator)
    read = (lambda model: getattr(model, parameters)) if isinstance(parameters, str) else parameters
    seeds = seeds_for(random_state, n_resamples)

    def losses(predicted: Any) -> Any:
        return (predicted != targets) if is_classification else (predicted - targets) ** 2

    def fit_sample(i: int, model: Any) -> Any:
        rows = np.random.default_rng(seeds[i]).integers(n_rows, size=n_rows)
        model.fit(safe_indexing(X, rows), safe_indexing(y, rows))
        out_of_sample = np.ones(n_rows, dtype=bool)
        out_of_sample[rows] = False
        return (
            losses(model.predict(X)) * out_of_sample,
            out_of_sample,
            None if X_new is None else model.predict(X_new),
            None if read is None else np.ravel(np.asarray(read(model), dtype=np.float64)),
        )

    total, n_out_of_sample = np.zeros(n_rows), np.zeros(n_rows)
    predictions, values = [], []
    for sample_losses, out_of_sample, predicted, found in fit_again(
        "bootstrap",
        estimator,
        n_resamples,
        fit_sample,
        n_jobs=n_jobs,
        verbose=verbose,
        callbacks=callbacks,
    ):
        total += sample_losses
        n_out_of_sample += out_of_sample
        predictions.append(predicted)
        values.append(found)
    fitted = clone(estimator).fit(X, y)
    predicted = fitted.predict(X)
    apparent = float(np.mean(losses(predicted)))
    seen = n_out_of_sample > 0
    if not seen.any():
        raise ValueError(
            f"n_resamples: no row is out of the bag of any of {n_resamples} samples; increase it"
        )
    return Bootstrap(
        predictions=np.array([] if X_new is None else predictions),
        parameters=np.array([] if read is None else values),
        **_error_estimates(
            apparent,
            float(np.mean(total[seen] / n_out_of_sample[seen])),
            _no_information(targets, predicted, is_classification),
        ),
    )


def _error_estimates(apparent: float, out_of_bag: float, no_information: float) -> dict[str, float]:
    """Return the errors of `Bootstrap`, with the .632 and .632+ estimates."""
    # Efron and Tibshirani bound the out-of-bag error by the no-information error.
    capped = min(out_of_bag, no_information)
    overfits = capped > apparent and no_information > apparent
    overfitting = (capped - apparent) / (no_information - apparent) if overfits else 0.0
    weight = 0.632 / (1 - 0.368 * overfitting)
    return {
        "apparent_error": apparent,
        "out_of_bag_error": out_of_bag,
        "no_information_error": no_information,
        "overfitting": float(overfitting),
        "error_632": 0.368 * apparent + 0.632 * out_of_bag,
        "error_632_plus": (1 - weight) * apparent + weight * capped,
    }


def _no_information(targets: Any, predicted: Any, is_classification: bool) -> float:
    """Return the mean loss over all pairs of a target and a prediction."""
    if is_classification:
        labels = np.unique(np.concatenate([targets, predicted]))
        target_shares = np.array([(targets == label).mean() for label in labels])
        predicted_shares = np.array([(predicted == label).mean() for label in labels])
        return float(1 - target_shares @ predicted_shares)
    return float(np.var(targets) + np.var(predicted) + (targets.mean() - predicted.mean()) ** 2)
