"""Shapley values of any model: the public functions, which select a method."""

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
from spinney.inspection.shap.trees import ShapResult, TreeSum, explain_trees, read_stored, read_sum
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
    """Distribute each prediction over the columns, by Shapley values.

    The values are exact for trees, ensembles of trees (boosting, AnyBoost of trees, forests,
    bagging, AdaBoost, isolation forests, models imported from other libraries) and linear Spinney
    models. For every other estimator they are sampled.

    Parameters
    ----------
    model : fitted estimator
        The model. With ``method="sampling"`` any function of rows is accepted.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows that are explained.
    background : table of the same columns or None, default=None
        Rows that provide the values of columns outside a coalition: a sample of the training rows;
        about 100 suffice. All of them are used: the time grows with their number, the memory (about
        64 MB per thread) does not. None: trees use the shares of training rows that they store;
        linear models and sampling use X itself, if it has more than one row.
    method : {"auto", "tree", "linear", "sampling"}, default="auto"
        "auto" selects an exact method if there is one.
    feature_perturbation : {"tree_path_dependent", "interventional"} or None, default=None
        How trees treat columns outside a coalition. "interventional": they have the values of
        background rows, independently of the other columns. "tree_path_dependent": rows follow
        both branches, weighted by the shares of training rows. None is "interventional" if there is
        a background, otherwise "tree_path_dependent".
    cover : {"auto", "rows", "weight"}, default="auto"
        How training rows are counted without a background: each once, or by weight (for boosters:
        by second derivatives). "auto" is "weight" for trees and forests, "rows" for boosters, and
        "weight" for boosters imported from XGBoost and CatBoost, which store no row counts.
    n_permutations : int, default=1
        Sampling: pairs of permutations for each row of the background.
    max_background : int, default=100
        Sampling: the size of a random sample of the background if it has more rows. (Trees and
        linear models use all rows.)
    random_state : int, RandomState or None, default=0
        Sampling: the seed.
    n_jobs : int or None, default=None
        The number of threads of the tree methods; it does not change the values.

    Returns
    -------
    ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_outputs)
        Contributions to the model's raw score: the prediction of regressors, the log-odds of two
        classes (boosting, logistic regression), the scores before softmax of more classes, the
        probabilities of forests. `explain` returns the name of the output and the base values, too.

    See Also
    --------
    explain : The same with base values, names and standard errors.
    shap_interaction_values : Values of pairs of columns.

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
    result = _calculate(
        model,
        X,
        background,
        method=method,
        feature_perturbation=feature_perturbation,
        cover=cover,
        n_permutations=n_permutations,
        max_background=max_background,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return _squeezed(result.values)


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
    """Explain each prediction by Shapley values, with base values and names.

    Parameters
    ----------
    model, X, background, method, feature_perturbation, cover, n_permutations, max_background, \
random_state, n_jobs
        As for `shap_values`.

    Returns
    -------
    Explanation
        Values, base values, rows, names, a description of the output and the method; it has the
        attributes of ``shap.Explanation``.

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
    result = _calculate(
        model,
        X,
        background,
        method=method,
        feature_perturbation=feature_perturbation,
        cover=cover,
        n_permutations=n_permutations,
        max_background=max_background,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    values = _squeezed(result.values)
    base = np.broadcast_to(result.base, (len(values), len(result.base)))
    view = TableView(X, model)
    errors = result.standard_errors
    return Explanation(
        values,
        base[:, 0] if values.ndim == 2 else base,
        view.values(),
        view.names,
        result.output_names if values.ndim == 3 else None,
        result.output,
        result.method,
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
    """Distribute each prediction over pairs of columns, by Shapley interaction values.

    Parameters
    ----------
    model : fitted estimator
        A Spinney tree, tree ensemble or linear model.
    X, background, feature_perturbation, cover, n_jobs
        As for `shap_values`.

    Returns
    -------
    ndarray of shape (n_rows, n_columns, n_columns) or (…, n_outputs)
        Symmetric in the columns; each row of a matrix adds up to the column's Shapley value. The
        interaction of two columns is split evenly between their two entries; the diagonal has the
        main effects.

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
    result = _calculate(
        model,
        X,
        background,
        method="auto",
        feature_perturbation=feature_perturbation,
        cover=cover,
        n_permutations=1,
        max_background=100,
        random_state=0,
        n_jobs=n_jobs,
        interactions=True,
    )
    return _squeezed(result.values)


def _squeezed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[..., 0] if values.shape[-1] == 1 else values


def _calculate(
    model: Any,
    X: Any,
    background: Any,
    *,
    method: str,
    feature_perturbation: str | None,
    cover: str,
    n_permutations: int,
    max_background: int,
    random_state: Any,
    n_jobs: int | None,
    interactions: bool = False,
) -> ShapResult:
    """Check the arguments, select a method and calculate the values."""
    _check_choice("method", method, _METHODS)
    _check_choice("cover", cover, _COVERS)
    if feature_perturbation is not None:
        _check_choice("feature_perturbation", feature_perturbation, _PERTURBATIONS)
    for name, value in (("n_permutations", n_permutations), ("max_background", max_background)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name}: expected a positive integer, got {value!r}")
    n_threads = effective_n_jobs(n_jobs)
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    tree_sum, stored = None, None
    if method in ("auto", "tree") and not isinstance(model, LINEAR_MODELS):
        tree_sum, stored, why = _read_as_tree_sum(model)
        if tree_sum is None and method == "tree":
            raise TypeError(f"method='tree': {why}")
        if tree_sum is None and interactions:
            raise TypeError(
                f"model: {why}; interactions are available only for sums over trees and linear "
                "models"
            )
        method = "sampling" if tree_sum is None else "tree"
    elif method == "auto":
        method = "linear"
    if tree_sum is not None:
        if feature_perturbation == "interventional" and background is None:
            raise ValueError(
                "feature_perturbation='interventional': expected a background, got None"
            )
        if feature_perturbation == "tree_path_dependent" and background is not None:
            raise ValueError(
                "feature_perturbation='tree_path_dependent': expected no background, got one"
            )
        return explain_trees(
            model,
            tree_sum,
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
        raise ValueError("background: expected a table, because X has only one row; got None")
    if method == "linear":
        if not isinstance(model, LINEAR_MODELS):
            raise TypeError(
                f"method='linear': expected a linear Spinney model, got {type(model).__name__}"
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


def _read_as_tree_sum(model: Any) -> tuple[TreeSum | None, Any, str]:
    """Return a model as a sum over trees, its trees in the core, or an error text."""
    why = f"expected a Spinney tree or tree ensemble, got {type(model).__name__}"
    if not type(model).__module__.startswith("spinney."):
        return None, None, why
    try:
        tree_sum = read_stored(model)
        return (read_sum(model), None, "") if tree_sum is None else (*tree_sum, "")
    except NotExpressible as error:
        # Errors that list the models supported by export do not apply here: export supports more.
        # Errors about this model do.
        return None, None, why if str(error).startswith("expected") else str(error)


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name}: expected one of {listed}, got {value!r}")
