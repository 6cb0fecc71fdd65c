"""The bootstrap: what would other samples have told?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, indexable

from spinney.model_selection.refits import fit_again, seeds_for

__all__ = ["Bootstrap", "bootstrap"]


@dataclass(frozen=True)
class Bootstrap:
    """What a bootstrap told.

    Attributes
    ----------
    predictions : ndarray of shape (n_resamples, n_new)
        Of `X_new` by each refitted model; empty without `X_new`.
    parameters : ndarray of shape (n_resamples, n_parameters)
        What `parameters` told of each model; empty without it.
    apparent_error : float
        Of the model fitted to all rows, on the same rows: too good.
    out_of_bag_error : float
        Of rows by the models whose samples do not have them: a little too bad.
    no_information_error : float
        That the model would have if rows and targets had nothing to do with each other.
    overfitting : float
        How far from the apparent to the no-information error the rows out of the bag are: 0 to 1.
    error_632 : float
        0.368 apparent + 0.632 out of the bag.
    error_632_plus : float
        The same with a weight that grows with overfitting, up to the error out of the bag.
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
        """Percentile intervals.

        Parameters
        ----------
        level : float, default=0.9
            Share of the refitted models inside.
        of : {"predictions", "parameters"}, default="predictions"
            Of what.

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
    """Refit a model to samples drawn with replacement, and see what varies.

    Parameters
    ----------
    estimator : estimator
        A classifier (errors are shares of wrong classes) or a regressor (squared errors).
    X : array or frame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        The targets.
    n_resamples : int, default=200
        Samples, each of as many rows as there are.
    X_new : array or frame, default=None
        Rows to predict with each model.
    parameters : callable or str, default=None
        What to keep of each fitted model: the name of an attribute (``"coef_"``), or a function of
        the model that returns numbers.
    random_state : int, RandomState instance or None, default=None
        For the draws.
    n_jobs : int, default=None
        Threads; they do not change the result.
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
    >>> told = bootstrap(LinearRegression(), X, y, parameters="coef_", random_state=0)
    >>> bool(told.apparent_error < told.error_632_plus < told.out_of_bag_error)
    True
    >>> low, high = told.interval(0.95, of="parameters")[2]  # of the body mass index
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
    classifies = is_classifier(estimator)
    tell = (lambda model: getattr(model, parameters)) if isinstance(parameters, str) else parameters
    seeds = seeds_for(random_state, n_resamples)

    def losses(predicted: Any) -> Any:
        return (predicted != targets) if classifies else (predicted - targets) ** 2

    def use(i: int, model: Any) -> Any:
        rows = np.random.default_rng(seeds[i]).integers(n_rows, size=n_rows)
        model.fit(_safe_indexing(X, rows), _safe_indexing(y, rows))
        outside = np.ones(n_rows, dtype=bool)
        outside[rows] = False
        return (
            losses(model.predict(X)) * outside,
            outside,
            None if X_new is None else model.predict(X_new),
            None if tell is None else np.ravel(np.asarray(tell(model), dtype=np.float64)),
        )

    total, n_outside = np.zeros(n_rows), np.zeros(n_rows)
    predictions, told = [], []
    for lost, outside, predicted, said in fit_again(
        "bootstrap", estimator, n_resamples, use, n_jobs, verbose, callbacks
    ):
        total += lost
        n_outside += outside
        predictions.append(predicted)
        told.append(said)
    fitted = clone(estimator).fit(X, y)
    predicted = fitted.predict(X)
    apparent = float(np.mean(losses(predicted)))
    seen = n_outside > 0
    if not seen.any():
        raise ValueError("n_resamples: expected enough that some rows are left out, got too few")
    out_of_bag = float(np.mean(total[seen] / n_outside[seen]))
    without = _no_information(targets, predicted, classifies)
    # As Efron and Tibshirani bound it: rows out of the bag cannot be worse than no information.
    capped = min(out_of_bag, without)
    overfits = capped > apparent and without > apparent
    overfitting = (capped - apparent) / (without - apparent) if overfits else 0.0
    weight = 0.632 / (1 - 0.368 * overfitting)
    return Bootstrap(
        predictions=np.array([] if X_new is None else predictions),
        parameters=np.array([] if tell is None else told),
        apparent_error=apparent,
        out_of_bag_error=out_of_bag,
        no_information_error=without,
        overfitting=float(overfitting),
        error_632=0.368 * apparent + 0.632 * out_of_bag,
        error_632_plus=(1 - weight) * apparent + weight * capped,
    )


def _no_information(targets: Any, predicted: Any, classifies: bool) -> float:
    """Mean loss over all pairs of a target and a prediction."""
    if classifies:
        labels = np.unique(np.concatenate([targets, predicted]))
        share = np.array([(targets == label).mean() for label in labels])
        told = np.array([(predicted == label).mean() for label in labels])
        return float(1 - share @ told)
    return float(np.var(targets) + np.var(predicted) + (targets.mean() - predicted.mean()) ** 2)
