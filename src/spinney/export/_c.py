"""Export of fitted models to C code."""

from __future__ import annotations

import re
from typing import Any

from spinney import __version__
from spinney.export._c_outcomes import write_outcome
from spinney.export._c_scores import write_scores
from spinney.export._c_text import as_string, comment, table
from spinney.export.reading import read_form
from spinney.models.form import Form, NotExpressible

__all__ = ["export_c"]


def export_c(model: Any, *, prefix: str = "") -> str:
    """Write a fitted model as one file of C99 that needs only the standard library.

    Parameters
    ----------
    model : estimator
        A fitted linear model, decision tree, extra tree, forest or isolation forest, or bagging,
        AdaBoost or gradient boosting of Spinney trees.
    prefix : str, default=""
        The prefix of the names of all functions, for several models in one program.

    Returns
    -------
    str
        The C code; compile it with any C compiler and link with ``-lm``. It defines

        - ``predict(row)``: the prediction for a row, ``const double *``. It is a ``double``, or the
          name of the class if classes are strings; models with several outputs have
          ``predict(row, out)``;
        - ``predict_index(row)``: the index of the predicted class in `classes_`, for classifiers;
        - ``predict_proba(row, out)``: the probabilities, if the model has them, and otherwise
          ``decision_function``;
        - ``category_code(column, text)``: the code of a category, if there are columns of
          categories.

        Missing values are NAN. The code of a category is its index among the training categories
        in ascending order. NAN and larger numbers are unseen categories.

    Raises
    ------
    TypeError
        If the model is not supported; the message states the reason.

    Notes
    -----
    The code computes in double precision, in the order of the model: raw scores and sums over trees
    have the same bits if the compiler follows the standard (no ``-ffast-math``).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney import export_c
    >>> from spinney.tree import DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> code = export_c(DecisionTreeRegressor(max_depth=3).fit(X, y), prefix="diabetes_")
    >>> "double diabetes_predict(const double *row)" in code
    True
    """
    if not isinstance(prefix, str) or not re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)?", prefix):
        raise ValueError(f"prefix: expected the beginning of a C identifier, got {prefix!r}")
    try:
        return _write(read_form(model), prefix)
    except NotExpressible as error:
        raise TypeError(f"export_c: cannot write {type(model).__name__}: {error}") from None


def _write(form: Form, prefix: str) -> str:
    scores, n_scores = write_scores(form)
    parts = [
        comment(_head(form, prefix)),
        "#include <math.h>\n" + ("#include <string.h>\n" if form.has_categories else ""),
        scores,
        write_outcome(form.outcome, n_scores, prefix),
    ]
    if form.has_categories:
        parts.append(_write_categories(form, prefix))
    return "\n".join(parts)


def _head(form: Form, prefix: str) -> list[str]:
    """Return the lines of the first comment, which describes the columns."""
    lines = [f"{form.model}, written by spinney {__version__}. C99; link with -lm.", ""]
    lines.append(f"A row has {form.n_features} numbers; NAN if missing:")
    for feature, categories in enumerate(form.categories):
        text = f"  {feature}  {form.column_name(feature)}"
        if categories is not None:
            text += f": the {prefix}category_code of one of {len(categories)} categories"
        if form.names is not None or categories is not None:
            lines.append(text)
    if lines[-1].endswith("missing:"):
        lines[-1] = lines[-1].replace(":", ".")
    return lines


def _write_categories(form: Form, prefix: str) -> str:
    """Write the tables of categories and the function `category_code`."""
    parts, cases = [], []
    for feature, categories in enumerate(form.categories):
        if categories is None or len(categories) == 0:
            continue
        texts = [as_string(str(value)) for value in categories.tolist()]
        parts.append(table(f"char *const categories_{feature}[]", texts))
        cases.append(f"    case {feature}: names = categories_{feature}; break;")
    parts.append(
        f"""\
/* The code of a category (numbers as Python prints them); NAN for unseen categories. */
double {prefix}category_code(int column, const char *text)
{{
    const char *const *names = 0;
    int code;
    switch (column) {{
{chr(10).join(cases)}
    }}
    for (code = 0; names && code < n_categories[column]; ++code) {{
        if (strcmp(names[code], text) == 0) return code;
    }}
    return NAN;
}}
"""
    )
    return "\n".join(parts)
