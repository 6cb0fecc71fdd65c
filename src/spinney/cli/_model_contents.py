"""The readable contents of a fitted model: tree, rules, coefficients or importances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["contents_as_lines", "model_contents", "uncertainty_method"]


def model_contents(model: Any, *, depth: int | None, top: int | None) -> dict[str, Any]:
    """Return the contents of a model as JSON: at most one of the keys below, and ``total``.

    ``tree`` is a text of at most `depth` levels, and ``rules`` is a list of texts.
    ``coefficients`` is a list of columns with one number per output, the largest first; it comes
    with ``intercept`` and ``outputs``. ``importances`` is a list of columns with one number each;
    ``kind`` describes the type of importance. Lists end after `top` entries; ``total`` is their
    full length.
    """
    inner = model.estimator_ if hasattr(model, "learner_param_names") else model
    names = _names(model, inner)
    if hasattr(inner, "rules_"):
        rules = [str(rule) for rule in inner.rules_]
        return {"rules": rules[:top], "total": len(rules)}
    if _is_tree(inner):
        # Imported late, so that --help and completion start fast.
        from spinney.tree import export_text

        # In `export_text`, as in scikit-learn, the root is at depth 0.
        levels = None if depth is None else depth - 1
        text = export_text(inner, feature_names=names, max_depth=levels)
        return {"tree": text.rstrip("\n").split("\n")}
    if hasattr(inner, "coef_"):
        scaled = hasattr(model, "point_names")
        return {**_coefficients(inner, names, top), "of_scaled_columns": scaled}
    importances = getattr(inner, "feature_importances_", None)
    if importances is None:
        return {}
    listed = _largest(np.asarray(importances)[None, :], names, top)
    return {"importances": listed, "total": len(importances), "kind": _importance_kind(inner)}


def uncertainty_method(model: Any) -> str | None:
    """Return the method of a model's intervals or sets; None if it has neither."""
    for kind, name in (("intervals", "interval_method_"), ("sets", "set_method_")):
        # Neighbour models calculate their held-out predictions on the first request; the
        # method is known without them.
        inner = getattr(model, "estimator_", model)
        is_expensive = type(inner).__name__.startswith(("KNeighbors", "Local"))
        if not hasattr(type(model), name):
            continue
        if is_expensive and vars(inner).get("_held_out") is None:
            return f"{kind}: conformal, rows, each by the others"
        try:
            return f"{kind}: {getattr(model, name)}"
        except (AttributeError, ValueError):
            return None
    return None


def contents_as_lines(contents: dict[str, Any]) -> list[str]:
    """Format the contents of a model as lines of text."""
    if "tree" in contents:
        return list(contents["tree"])
    if "rules" in contents:
        return [*contents["rules"], *_rest(contents, "rules")]
    if "coefficients" in contents:
        key, title = "coefficients", "coefficients, largest first"
        if contents["of_scaled_columns"]:
            title = "coefficients of the scaled columns, largest first"
    elif "importances" in contents:
        key = "importances"
        title = f"importances of the columns, largest first: {contents['kind']}"
    else:
        return []
    lines = [title]
    width = max((len(entry["column"]) for entry in contents[key]), default=0)
    outputs = contents.get("outputs")
    if outputs and len(outputs) > 1:
        lines.append(" " * (width + 4) + "  ".join(f"{label:>11.11}" for label in outputs))
    for entry in contents[key]:
        numbers = "  ".join(f"{value:>11.4g}" for value in entry["values"])
        lines.append(f"  {entry['column']:<{width}}  {numbers}")
    lines += _rest(contents, key)
    if contents.get("intercept"):
        numbers = "  ".join(f"{value:>11.4g}" for value in contents["intercept"])
        lines.append(f"  {'(intercept)':<{width}}  {numbers}")
    return lines


def _importance_kind(model: Any) -> str:
    """Return the type of ``feature_importances_`` and its known bias."""
    kind = getattr(model, "importance_type", None)
    if kind == "corrected":
        return "decrease of the impurity in out-of-bag rows (near zero for noise)"
    if kind == "permutation":
        return "decrease of the out-of-bag score when a column is shuffled"
    # Imported late, so that --help and completion start fast.
    from spinney.boosting.base import BaseBoosting

    boosted = isinstance(model, BaseBoosting)
    quantity = "gain of the objective" if boosted else "decrease of the impurity"
    # The correction needs out-of-bag rows.
    can_correct = kind is not None and getattr(model, "bootstrap", False)
    hint = "; importance_type=corrected does not" if can_correct else ""
    return f"share in the {quantity} in training (favours columns with many values{hint})"


def _names(model: Any, inner: Any) -> list[str] | None:
    if hasattr(model, "point_names"):
        names: list[str] = model.point_names()
        return names
    for estimator in (model, inner):
        if hasattr(estimator, "feature_names_in_"):
            return [str(name) for name in estimator.feature_names_in_]
    return None


def _is_tree(model: Any) -> bool:
    # Imported late, so that --help and completion start fast.
    from spinney.tree.export.describe import has_own_reader

    return hasattr(model, "tree_") or has_own_reader(model)


def _coefficients(model: Any, names: list[str] | None, top: int | None) -> dict[str, Any]:
    coefficients = np.atleast_2d(np.asarray(model.coef_))
    labels = getattr(model, "classes_", None)
    outputs = None
    if labels is not None:
        # Two classes have only one row of coefficients, for the second class.
        chosen = labels if len(labels) == len(coefficients) else labels[1:]
        outputs = [str(label) for label in chosen]
    intercept = np.atleast_1d(np.asarray(getattr(model, "intercept_", [])))
    return {
        "coefficients": _largest(coefficients, names, top),
        "intercept": [float(value) for value in intercept],
        "outputs": outputs,
        "total": coefficients.shape[1],
    }


def _largest(values: NDArray[Any], names: list[str] | None, top: int | None) -> list[Any]:
    """List columns by their largest absolute value, in a stable order."""
    n_columns = values.shape[1]
    if names is None or len(names) != n_columns:
        names = [f"x{number}" for number in range(n_columns)]
    order = np.argsort(-np.abs(values).max(axis=0), kind="stable")[:top]
    return [
        {"column": names[column], "values": [float(value) for value in values[:, column]]}
        for column in order
    ]


def _rest(contents: dict[str, Any], key: str) -> list[str]:
    more = contents["total"] - len(contents[key])
    return [f"  … and {more:,} more (--top N shows N)"] if more else []
