"""From a fitted model to its form, or to a message that says what stands against it."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from spinney.export.linear_models import LINEAR_MODELS, read_linear, read_polynomial
from spinney.export.neighbor_models import NEIGHBOR_MODELS, read_neighbors
from spinney.export.tree_models import read_trees
from spinney.linear_model import PolynomialRegression
from spinney.models.form import Form, NotExpressible

__all__ = ["read_form"]


def read_form(model: Any) -> Form:
    """Read a fitted model of any kind that has a form.

    Parameters
    ----------
    model : estimator
        A fitted model of Spinney.

    Returns
    -------
    Form
        What is to be written; `NotExpressible` says why there is none.
    """
    if not type(model).__module__.startswith("spinney."):
        raise NotExpressible("expected a fitted model of Spinney")
    if isinstance(model, LINEAR_MODELS):
        read: Any = read_linear
    elif isinstance(model, PolynomialRegression):
        read = read_polynomial
    elif isinstance(model, NEIGHBOR_MODELS):
        read = read_neighbors
    else:
        read = read_trees
    check_is_fitted(model)
    scores, outcome = read(model)
    names = getattr(model, "feature_names_in_", None)
    schema = vars(model).get("_schema")
    return Form(
        type(model).__name__,
        None if names is None else [str(name) for name in names],
        [None] * int(model.n_features_in_) if schema is None else list(schema.categories),
        scores,
        outcome,
    )
