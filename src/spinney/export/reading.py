"""Conversion of fitted models to forms, which the writers of C and ONNX use."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from spinney.data.table import schema_of
from spinney.export.linear_models import LINEAR_MODELS, read_linear
from spinney.export.neighbor_models import NEIGHBOR_MODELS, read_neighbors
from spinney.export.tree_models import read_trees
from spinney.linear_model import PolynomialRegression
from spinney.models.form import Form, NotExpressible

__all__ = ["read_form"]


def read_form(model: Any) -> Form:
    """Convert a fitted model to its form.

    Parameters
    ----------
    model : estimator
        A fitted Spinney model.

    Returns
    -------
    Form
        The form. If the model has none, `NotExpressible` is raised with the reason.
    """
    if not type(model).__module__.startswith("spinney."):
        raise NotExpressible("expected a fitted Spinney model")
    if isinstance(model, (*LINEAR_MODELS, PolynomialRegression)):
        read: Any = read_linear
    elif isinstance(model, NEIGHBOR_MODELS):
        read = read_neighbors
    else:
        read = read_trees
    check_is_fitted(model)
    scores, outcome = read(model)
    names = getattr(model, "feature_names_in_", None)
    schema = schema_of(model)
    return Form(
        type(model).__name__,
        None if names is None else [str(name) for name in names],
        [None] * int(model.n_features_in_) if schema is None else list(schema.categories),
        scores,
        outcome,
    )
