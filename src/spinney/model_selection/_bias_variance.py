"""Decomposition of the expected error into noise, bias and variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import indexable

from spinney.data.sklearn_versions import safe_indexing
from spinney.model_selection.refits import fit_again, seeds_for

__all__ = ["BiasVariance", "bias_variance"]


@dataclass(frozen=True)
class BiasVariance:
    """Decomposition of the expected error.

    Attributes
    ----------
    error : float
        Mean loss over training sets and test rows.
    noise : float or None
        The irreducible error. None if the truth is unknown; it is then part of the bias.
    bias : float
        Squared error: mean square of (mean prediction − truth). Classes: share of rows whose
        most frequent prediction is not the true class.
    variance : float
        Squared error: mean variance of the predictions. Classes: share of predictions that are not
        the most frequent one of their row.
    net_variance : float
        The contribution of the variance to the error. For squared error it is the variance. For
        classes it is less, as variance reduces the error of rows whose most frequent prediction is
        wrong. Without noise, error = bias + net_variance (Domingos 2000).
    main : ndarray of shape (n_test,)
        Mean, or most frequent, prediction of each row.
    predictions : ndarray of shape (n_repeats, n_test)
        All predictions.
    """

    error: float
    noise: float | None
    bias: float
    variance: float
    net_variance: float
    main: NDArray[Any]
    predictions: NDArray[Any]


def bias_variance(
    estimator: Any,
    data: Any,
    X_test: Any,
    y_test: Any,
    *,
    truth: Any = None,
    n_repeats: int = 100,
    train_size: int | float = 1.0,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callbacks: Any = None,
) -> BiasVariance:
    """Fit a model to many training sets, and decompose its expected error.

    Parameters
    ----------
    estimator : estimator
        A regressor (squared error) or a classifier (0–1 loss).
    data : callable or tuple (X, y)
        A function of a ``numpy.random.Generator`` that returns a new training set (X, y); or a
        table from whose rows training sets are drawn with replacement.
    X_test : array or frame of shape (n_test, n_features)
        Rows to predict.
    y_test : array-like of shape (n_test,)
        Their targets, noise included.
    truth : array-like of shape (n_test,), default=None
        Their targets without noise (for classes: the most probable one), if known.
    n_repeats : int, default=100
        Number of training sets.
    train_size : int or float, default=1.0
        Rows of each training set if `data` is a table: a number, or a share of its rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the training sets.
    n_jobs : int, default=None
        Number of threads; it does not change the result.
    verbose : int, default=0
        1 shows a progress bar.
    callbacks : callable or list of callables, default=None
        Called with (done, n_repeats).

    Returns
    -------
    BiasVariance
        The decomposition.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.ensemble import BaggingRegressor
    >>> from spinney.model_selection import bias_variance
    >>> from spinney.tree import DecisionTreeRegressor
    >>> def draw(rng):
    ...     X = rng.uniform(-3, 3, size=(100, 1))
    ...     return X, np.sin(X[:, 0]) + rng.normal(scale=0.3, size=100)
    >>> X = np.linspace(-3, 3, 50)[:, np.newaxis]
    >>> f = np.sin(X[:, 0])
    >>> y = f + np.random.default_rng(0).normal(scale=0.3, size=50)
    >>> tree = bias_variance(DecisionTreeRegressor(), draw, X, y, truth=f, random_state=0)
    >>> bagged = bias_variance(BaggingRegressor(), draw, X, y, truth=f, random_state=0)
    >>> bool(bagged.variance < tree.variance)
    True
    """
    if n_repeats < 2:
        raise ValueError(f"n_repeats: expected at least 2, got {n_repeats}")
    seeds = seeds_for(random_state, n_repeats)
    draw = data if callable(data) else _sampler(data, train_size)

    def fit_and_predict(i: int, model: Any) -> Any:
        X, y = draw(np.random.default_rng(seeds[i]))
        return model.fit(X, y).predict(X_test)

    predictions = np.array(
        list(
            fit_again(
                "bias_variance",
                estimator,
                n_repeats,
                fit_and_predict,
                n_jobs=n_jobs,
                verbose=verbose,
                callbacks=callbacks,
            )
        )
    )
    y_test = np.asarray(y_test)
    has_truth = truth is not None
    truth = np.asarray(truth) if has_truth else y_test
    if truth.shape != y_test.shape or predictions.shape[1:] != y_test.shape:
        raise ValueError(
            f"y_test: expected shape {predictions.shape[1:]} for y_test and truth, got "
            f"{y_test.shape} and {truth.shape}"
        )
    decompose = _decompose_zero_one if is_classifier(estimator) else _decompose_squared
    return decompose(predictions, y_test, truth, has_truth=has_truth)


def _decompose_squared(
    predictions: Any, y_test: Any, truth: Any, *, has_truth: bool
) -> BiasVariance:
    """Decompose the squared error of numeric predictions."""
    main = predictions.mean(axis=0)
    variance = float(predictions.var(axis=0).mean())
    return BiasVariance(
        error=float(np.mean((predictions - y_test) ** 2)),
        noise=float(np.mean((y_test - truth) ** 2)) if has_truth else None,
        bias=float(np.mean((main - truth) ** 2)),
        variance=variance,
        net_variance=variance,
        main=main,
        predictions=predictions,
    )


def _decompose_zero_one(
    predictions: Any, y_test: Any, truth: Any, *, has_truth: bool
) -> BiasVariance:
    """Decompose the error rate of predicted classes."""
    labels, codes = np.unique(predictions, return_inverse=True)
    counts = np.array([(codes.reshape(predictions.shape) == k).sum(0) for k in range(len(labels))])
    main = labels[counts.argmax(axis=0)]
    wrong = main != truth
    varies = (predictions != main).mean(axis=0)
    # If the most frequent prediction is correct, every other one is an error. If it is wrong,
    # others may be correct.
    misses = (predictions != truth).mean(axis=0)
    return BiasVariance(
        error=float(np.mean(predictions != y_test)),
        noise=float(np.mean(y_test != truth)) if has_truth else None,
        bias=float(wrong.mean()),
        variance=float(varies.mean()),
        net_variance=float(np.mean(np.where(wrong, misses - 1, misses))),
        main=main,
        predictions=predictions,
    )


def _sampler(data: Any, train_size: int | float) -> Any:
    """Return a function that draws training sets from a table."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise ValueError("data: expected a function that returns (X, y), or a tuple (X, y)")
    X, y = indexable(*data)
    n_rows = len(np.asarray(y))
    n = train_size if isinstance(train_size, int) else round(train_size * n_rows)
    if n < 1:
        raise ValueError(f"train_size: expected at least one row, got {train_size!r}")

    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        rows = rng.integers(n_rows, size=n)
        return safe_indexing(X, rows), safe_indexing(y, rows)

    return draw
