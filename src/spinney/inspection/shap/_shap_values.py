"""One call for the Shapley values of any model."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted

from spinney.export.linear_models import LINEAR_MODELS
from spinney.inspection.shap._explanation import Explanation
from spinney.inspection.shap.linear import explain_linear
from spinney.inspection.shap.sampling import explain_by_sampling
from spinney.inspection.shap.trees import Parts, TreeSum, explain_trees, read_stored, read_sum
from spinney.inspection.table_view import TableView
from spinney.models.form import NotExpressible
from spinney.runtime.threads import effective_n_jobs

__all__ = ["explain", "shap_interaction_values", "shap_values"]

_METHODS = ("auto", "tree", "linear", "sampling")
_PERTURBATIONS = ("tree_path_dependent", "interventional")
_COVERS = ("auto", "rows", "weight")


def shap_values(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    method: str = "auto",
    feature_perturbation: str | None = None,
    cover: str = "auto",
    n_permutations: int = 1,
    max_background: int = 100,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Part each prediction among the columns, by Shapley values.

    Exact for trees, ensembles of trees (boosting, AnyBoost of trees, forests, bagging, AdaBoost's
    votes, isolation forests, models imported from other libraries) and linear models of Spinney;
    sampled for every other estimator.

    Parameters
    ----------
    model : fitted estimator
        The model. With ``method="sampling"`` any function of rows will do.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows that are explained.
    background : table of the same columns or None, default=None
        Rows that stand for "nothing is known of this column": a sample of the training rows, of
        which some hundred will do. All of them are used: the time grows with their number, the
        memory (some 64 MB a thread) does not. None: trees use the shares of training rows that they
        remember; linear models and sampling take X itself, if it has more than one row.
    method : {"auto", "tree", "linear", "sampling"}, default="auto"
        "auto" is exact where it can be.
    feature_perturbation : {"tree_path_dependent", "interventional"} or None, default=None
        What a column that is not known does in a tree. "interventional": it has the values of the
        background's rows, whatever the other columns are. "tree_path_dependent": rows divide as the
        training rows did. None is the first if there is a background, else the second.
    cover : {"auto", "rows", "weight"}, default="auto"
        How training rows count without a background: each once, or by their weight (for boosters:
        their second derivatives). "auto" is the weight for trees and forests, rows for boosters,
        and the weight for boosters imported from XGBoost and CatBoost, which know no other.
    n_permutations : int, default=1
        Sampling: pairs of permutations for each row of the background.
    max_background : int, default=100
        Sampling: rows drawn from the background if it has more. (Trees and linear models use all.)
    random_state : int, RandomState or None, default=0
        Sampling: the seed.
    n_jobs : int or None, default=None
        Threads of the tree methods. The values are the same for any number.

    Returns
    -------
    ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_outputs)
        Parts of the model's raw score: the prediction of regressors, the log-odds of two classes
        (boosting, logistic regression), the scores before softmax of several, the probabilities of
        forests. `explain` says which, and the value from which they start.

    See Also
    --------
    explain : The same with base values, names and standard errors.
    shap_interaction_values : Pairs of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney.ensemble import GradientBoostingClassifier
    >>> from spinney.inspection import shap_values
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> shap_values(model, X).shape
    (150, 4, 3)
    """
    parts = _parts(
        model,
        X,
        background,
        method,
        feature_perturbation,
        cover,
        n_permutations,
        max_background,
        random_state,
        n_jobs,
    )
    return _squeezed(parts.values)


def explain(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    method: str = "auto",
    feature_perturbation: str | None = None,
    cover: str = "auto",
    n_permutations: int = 1,
    max_background: int = 100,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Explanation:
    """Explain each prediction by Shapley values, with all that is needed to read them.

    Parameters
    ----------
    model, X, background, method, feature_perturbation, cover, n_permutations, max_background, \
random_state, n_jobs
        As for `shap_values`.

    Returns
    -------
    Explanation
        Values, base values, rows, names, what the output is and how it was explained; the
        attributes of ``shap.Explanation`` among them.

    Examples
    --------
    >>> from spinney.inspection import explain
    >>> from spinney.linear_model import LinearRegression
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 4.0]]
    >>> model = LinearRegression().fit(X, [0.0, 2.0, 7.0])
    >>> explanation = explain(model, X)
    >>> explanation.values.round(6).tolist()
    [[-2.0, -1.0], [0.0, -1.0], [2.0, 2.0]]
    >>> explanation.base_values.tolist()
    [3.0, 3.0, 3.0]
    """
    parts = _parts(
        model,
        X,
        background,
        method,
        feature_perturbation,
        cover,
        n_permutations,
        max_background,
        random_state,
        n_jobs,
    )
    values = _squeezed(parts.values)
    base = np.broadcast_to(parts.base, (len(values), len(parts.base)))
    view = TableView(X, model)
    errors = parts.standard_errors
    return Explanation(
        values,
        base[:, 0] if values.ndim == 2 else base,
        view.values(),
        view.names,
        parts.output_names if values.ndim == 3 else None,
        parts.output,
        parts.method,
        None if errors is None else _squeezed(errors),
    )


def shap_interaction_values(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    feature_perturbation: str | None = None,
    cover: str = "auto",
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Part each prediction among the pairs of columns, by Shapley interaction values.

    Parameters
    ----------
    model : fitted estimator
        A tree, an ensemble of trees or a linear model of Spinney.
    X, background, feature_perturbation, cover, n_jobs
        As for `shap_values`.

    Returns
    -------
    ndarray of shape (n_rows, n_columns, n_columns) or (…, n_outputs)
        Symmetric in the columns; each row of a matrix adds up to the column's Shapley value. What
        two columns do together is divided evenly between their two places; the diagonal has what a
        column does by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.inspection import shap_interaction_values
    >>> from spinney.tree import DecisionTreeRegressor
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, dtype=float)
    >>> both = DecisionTreeRegressor().fit(X, X[:, 0] * X[:, 1])
    >>> shap_interaction_values(both, X[3:4])[0].tolist()
    [[0.25, 0.125], [0.125, 0.25]]
    """
    parts = _parts(
        model,
        X,
        background,
        "auto",
        feature_perturbation,
        cover,
        1,
        100,
        0,
        n_jobs,
        interactions=True,
    )
    return _squeezed(parts.values)


def _squeezed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[..., 0] if values.shape[-1] == 1 else values


def _parts(
    model: Any,
    X: Any,
    background: Any,
    method: str,
    feature_perturbation: str | None,
    cover: str,
    n_permutations: int,
    max_background: int,
    random_state: Any,
    n_jobs: int | None,
    interactions: bool = False,
) -> Parts:
    _check_choice("method", method, _METHODS)
    _check_choice("cover", cover, _COVERS)
    if feature_perturbation is not None:
        _check_choice("feature_perturbation", feature_perturbation, _PERTURBATIONS)
    for name, value in (("n_permutations", n_permutations), ("max_background", max_background)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name}: expected a positive whole number, got {value!r}")
    n_threads = effective_n_jobs(n_jobs)
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    told, stored = None, None
    if method in ("auto", "tree") and not isinstance(model, LINEAR_MODELS):
        told, stored, why = _tree_sum(model)
        if told is None and method == "tree":
            raise TypeError(f"method='tree': {why}")
        if told is None and interactions:
            raise TypeError(
                f"model: {why}; interactions are known for sums over trees and linear models alone"
            )
        method = "sampling" if told is None else "tree"
    elif method == "auto":
        method = "linear"
    if told is not None:
        if feature_perturbation == "interventional" and background is None:
            raise ValueError("feature_perturbation='interventional': expected a background")
        if feature_perturbation == "tree_path_dependent" and background is not None:
            raise ValueError("feature_perturbation='tree_path_dependent': expected no background")
        return explain_trees(
            model,
            told,
            X,
            background,
            stored=stored,
            cover=cover,
            interactions=interactions,
            n_threads=n_threads,
        )
    if feature_perturbation == "tree_path_dependent":
        raise ValueError(
            f"feature_perturbation='tree_path_dependent': expected a model of trees, got "
            f"{type(model).__name__}"
        )
    if method == "tree":
        raise TypeError(f"method='tree': expected a model of trees, got {type(model).__name__}")
    if background is None and _num_samples(X) == 1:
        raise ValueError("background: expected rows to compare with, as X has one row only")
    if method == "linear":
        if not isinstance(model, LINEAR_MODELS):
            raise TypeError(
                f"method='linear': expected a linear model of Spinney, got {type(model).__name__}"
            )
        reference = X if background is None else background
        return explain_linear(model, X, reference, interactions=interactions)
    return explain_by_sampling(
        model,
        X,
        background,
        n_permutations=int(n_permutations),
        max_background=int(max_background),
        random_state=random_state,
    )


def _tree_sum(model: Any) -> tuple[TreeSum | None, Any, str]:
    """Return the sum over trees that a model is, where its trees are, or why it is none."""
    why = f"expected a tree or an ensemble of trees of Spinney's, got {type(model).__name__}"
    if not type(model).__module__.startswith("spinney."):
        return None, None, why
    try:
        told = read_stored(model)
        return (read_sum(model), None, "") if told is None else (*told, "")
    except NotExpressible as error:
        # What export expects is more than sums over trees; what it says of one model is true here.
        return None, None, why if str(error).startswith("expected") else str(error)


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name}: expected one of {listed}, got {value!r}")
