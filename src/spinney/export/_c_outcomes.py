"""C code that converts scores to predictions."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from spinney.export._c_text import as_double, as_string, table
from spinney.models import outcomes as _outcomes
from spinney.models.form import NotExpressible

__all__ = ["write_outcome"]


def write_outcome(outcome: Any, n_scores: int, prefix: str) -> str:
    """Return the C code of the public functions, with the prefix in their names."""
    return _write(outcome, n_scores, prefix)


def _function(head: str, body: list[str], n_scores: int) -> str:
    """Return a C function; with `n_scores` it declares the array `scores`."""
    lines = "\n".join(f"    {line}" for line in body)
    scores = f"    double scores[{n_scores}];\n" if n_scores else ""
    return f"{head}\n{{\n{scores}{lines}\n}}\n"


_COMPUTE = "compute_scores(row, scores);"
_LARGEST = """\
static int largest(const double *values, int n)
{
    int best = 0, k;
    for (k = 1; k < n; ++k) {
        if (values[k] > values[best]) best = k;
    }
    return best;
}
"""
_SOFTMAX = """\
static void softmax(double *values, int n)
{
    const double most = values[largest(values, n)];
    double total = 0.0;
    int k;
    for (k = 0; k < n; ++k) {
        values[k] = exp(values[k] - most);
        total += values[k];
    }
    for (k = 0; k < n; ++k) values[k] /= total;
}
"""
_SORT = """\
static void sort_with(double *values, double *weights, int n)
{
    int i, j;
    for (i = 1; i < n; ++i) {
        const double value = values[i], weight = weights[i];
        for (j = i; j > 0 && values[j - 1] > value; --j) {
            values[j] = values[j - 1];
            weights[j] = weights[j - 1];
        }
        values[j] = value;
        weights[j] = weight;
    }
}
"""


def _write_numbers(expression: str, flat: bool, n_scores: int, prefix: str) -> str:
    """Return `predict` of a regressor, with an expression of ``scores[k]``."""
    if flat:
        body = ["const int k = 0;", _COMPUTE, f"return {expression};"]
        return _function(f"double {prefix}predict(const double *row)", body, n_scores)
    body = ["int k;", _COMPUTE, f"for (k = 0; k < {n_scores}; ++k) out[k] = {expression};"]
    return _function(f"void {prefix}predict(const double *row, double *out)", body, n_scores)


def _write_classes(
    classes: Any,
    n_scores: int,
    prefix: str,
    index: list[str],
    numbers: tuple[str, list[str]] | None,
) -> str:
    """Return `predict_index`, `predict`, and a function for probabilities or scores.

    Parameters
    ----------
    classes : array
        The classes.
    n_scores : int
        The number of scores.
    prefix : str
        The prefix of function names.
    index : list of str
        The body of `predict_index`.
    numbers : (str, list of str) or None
        Head and body of the third function.
    """
    parts = [_function(f"int {prefix}predict_index(const double *row)", index, n_scores)]
    parts.append(_labels(np.asarray(classes), prefix))
    if numbers is not None:
        head, body = numbers
        parts.append(_function(head, body, n_scores))
    return "\n".join(parts)


def _labels(classes: Any, prefix: str) -> str:
    """Return the table of classes and `predict`."""
    result, labels = _label_table(classes)
    return f"""\
{labels}
{result}{prefix}predict(const double *row)
{{
    return classes[{prefix}predict_index(row)];
}}
"""


def _label_table(classes: Any) -> tuple[str, str]:
    """Return the C type of a class, and the table of classes."""
    types = {type(value) for value in classes.tolist()}
    if types <= {str}:
        declaration, result = "char *const classes[]", "const char *"
        cells = [as_string(value) for value in classes.tolist()]
    elif types <= {int, float, bool}:
        if not all(float(value) == value for value in classes.tolist()):
            raise NotExpressible("its classes are integers that a double cannot represent")
        declaration, result = "double classes[]", "double "
        cells = [as_double(value) for value in classes.tolist()]
    else:
        found = ", ".join(sorted(t.__name__ for t in types))
        raise NotExpressible(f"its classes are of type {found}; expected strings or numbers")
    return result, table(declaration, cells)


def _proba_function(prefix: str, body: list[str]) -> tuple[str, list[str]]:
    return f"void {prefix}predict_proba(const double *row, double *out)", body


@singledispatch
def _write(outcome: Any, n_scores: int, prefix: str) -> str:
    raise NotExpressible(f"C code does not support the outcome {type(outcome).__name__}")


@_write.register
def _(outcome: _outcomes.Numbers, n_scores: int, prefix: str) -> str:
    divided = "" if outcome.divisor == 1 else f" / {as_double(outcome.divisor)}"
    return _write_numbers(f"scores[k]{divided}", outcome.flat, n_scores, prefix)


@_write.register
def _(outcome: _outcomes.Exponential, n_scores: int, prefix: str) -> str:
    return _write_numbers("exp(scores[k])", outcome.flat, n_scores, prefix)


@_write.register
def _(outcome: _outcomes.Logistic, n_scores: int, prefix: str) -> str:
    return _write_numbers("1.0 / (1.0 + exp(-scores[k]))", outcome.flat, n_scores, prefix)


@_write.register
def _(outcome: _outcomes.SortedQuantiles, n_scores: int, prefix: str) -> str:
    positions = table("int positions[]", map(str, outcome.positions))
    body = [
        f"double order[{n_scores}] = {{0}};",
        "int k;",
        _COMPUTE,
        f"sort_with(scores, order, {n_scores});",
        f"for (k = 0; k < {n_scores}; ++k) out[k] = scores[positions[k]];",
    ]
    head = f"void {prefix}predict(const double *row, double *out)"
    return f"{_SORT}\n{positions}\n{_function(head, body, n_scores)}"


@_write.register
def _(outcome: _outcomes.WeightedMedian, n_scores: int, prefix: str) -> str:
    weights = table("double weights[]", map(as_double, outcome.weights))
    body = [
        f"double order[{n_scores}], below = 0.0, total = 0.0;",
        "int k;",
        _COMPUTE,
        f"for (k = 0; k < {n_scores}; ++k) order[k] = weights[k];",
        f"sort_with(scores, order, {n_scores});",
        f"for (k = 0; k < {n_scores}; ++k) total += order[k];",
        f"for (k = 0; k < {n_scores - 1}; ++k) {{",
        "    below += order[k];",
        "    if (below >= 0.5 * total) break;",
        "}",
        "return scores[k];",
    ]
    head = f"double {prefix}predict(const double *row)"
    return f"{_SORT}\n{weights}\n{_function(head, body, n_scores)}"


@_write.register
def _(outcome: _outcomes.Isolation, n_scores: int, prefix: str) -> str:
    usual, offset = as_double(outcome.usual), as_double(outcome.offset)
    score = f"-pow(2.0, -(scores[0] / {usual}))" if outcome.usual > 0 else "-0.5"
    head = f"double {prefix}decision_function(const double *row)"
    decision = _function(head, [_COMPUTE, f"return {score} - {offset};"], n_scores)
    return f"""\
{decision}
double {prefix}predict(const double *row)
{{
    return {prefix}decision_function(row) < 0 ? -1.0 : 1.0;
}}
"""


@_write.register
def _(outcome: _outcomes.Shares, n_scores: int, prefix: str) -> str:
    divided = f"out[k] = scores[k] / {as_double(outcome.divisor)};"
    share = ["int k;", _COMPUTE, f"for (k = 0; k < {n_scores}; ++k) {divided}"]
    index = [_COMPUTE, f"return largest(scores, {n_scores});"]
    return f"{_LARGEST}\n" + _write_classes(
        outcome.classes, n_scores, prefix, index, _proba_function(prefix, share)
    )


@_write.register
def _(outcome: _outcomes.SeveralShares, n_scores: int, prefix: str) -> str:
    sizes = [len(classes) for classes in outcome.classes]
    n = len(sizes)
    starts = table("int starts[]", map(str, np.cumsum([0, *sizes])))
    kind, labels = _label_table(
        np.concatenate([np.asarray(classes, dtype=object) for classes in outcome.classes])
    )
    choose = [
        "int k;",
        _COMPUTE,
        f"for (k = 0; k < {n}; ++k) {{",
        "    out[k] = largest(scores + starts[k], starts[k + 1] - starts[k]);",
        "}",
    ]
    name = [
        f"int k, index[{n}];",
        f"{prefix}predict_index(row, index);",
        f"for (k = 0; k < {n}; ++k) out[k] = classes[starts[k] + index[k]];",
    ]
    divided = f"out[k] = scores[k] / {as_double(outcome.divisor)};"
    share = ["int k;", _COMPUTE, f"for (k = 0; k < {n_scores}; ++k) {divided}"]
    head = f"void {prefix}predict(const double *row, {kind}*out)"
    return "\n".join(
        [
            _LARGEST,
            starts,
            labels,
            _function(f"void {prefix}predict_index(const double *row, int *out)", choose, n_scores),
            _function(head, name, 0),
            _function(*_proba_function(prefix, share), n_scores),
        ]
    )


@_write.register
def _(outcome: _outcomes.TwoClasses, n_scores: int, prefix: str) -> str:
    odds = "scores[0]" if outcome.factor == 1 else f"{as_double(outcome.factor)} * scores[0]"
    share = [
        "double odds;",
        _COMPUTE,
        f"odds = {odds};",
        "out[0] = 1.0 / (1.0 + exp(odds));",
        "out[1] = 1.0 / (1.0 + exp(-odds));",
    ]
    index = [_COMPUTE, "return scores[0] > 0;"]
    return _write_classes(outcome.classes, n_scores, prefix, index, _proba_function(prefix, share))


@_write.register
def _(outcome: _outcomes.Softmax, n_scores: int, prefix: str) -> str:
    share = [
        "int k;",
        _COMPUTE,
        f"for (k = 0; k < {n_scores}; ++k) out[k] = scores[k];",
        f"softmax(out, {n_scores});",
    ]
    index = [_COMPUTE, f"return largest(scores, {n_scores});"]
    functions = _write_classes(
        outcome.classes, n_scores, prefix, index, _proba_function(prefix, share)
    )
    return f"{_LARGEST}\n{_SOFTMAX}\n{functions}"


@_write.register
def _(outcome: _outcomes.BoostedVotes, n_scores: int, prefix: str) -> str:
    n = n_scores
    total, others = as_double(outcome.total), as_double(n - 1)
    score = [f"for (k = 0; k < {n}; ++k) {{", f"    scores[k] /= {total};"]
    if not outcome.real:  # a vote that is not for a class is against it
        score.append(f"    scores[k] -= (1.0 - scores[k]) / {others};")
    decide = ["int k;", _COMPUTE, *score, "}"]
    if n == 2:
        index = [*decide, "return scores[1] - scores[0] > 0;"]
        share = [*decide, "out[1] = (scores[1] - scores[0]) / 2.0;", "out[0] = -out[1];"]
    else:
        index = [*decide, f"return largest(scores, {n});"]
        share = [*decide, f"for (k = 0; k < {n}; ++k) out[k] = scores[k] / {others};"]
    share.append(f"softmax(out, {n});")
    functions = _write_classes(outcome.classes, n, prefix, index, _proba_function(prefix, share))
    return f"{_LARGEST}\n{_SOFTMAX}\n{functions}"


@_write.register
def _(outcome: _outcomes.Sides, n_scores: int, prefix: str) -> str:
    head = f"double {prefix}decision_function(const double *row)"
    score = (head, [_COMPUTE, "return scores[0];"])
    index = [_COMPUTE, "return scores[0] > 0;"]
    return _write_classes(outcome.classes, n_scores, prefix, index, score)


@_write.register
def _(outcome: _outcomes.LargestScore, n_scores: int, prefix: str) -> str:
    copied = ["int k;", _COMPUTE, f"for (k = 0; k < {n_scores}; ++k) out[k] = scores[k];"]
    head = f"void {prefix}decision_function(const double *row, double *out)"
    index = [_COMPUTE, f"return largest(scores, {n_scores});"]
    return f"{_LARGEST}\n" + _write_classes(
        outcome.classes, n_scores, prefix, index, (head, copied)
    )


@_write.register
def _(outcome: _outcomes.OneClass, n_scores: int, prefix: str) -> str:
    share = [_COMPUTE, "out[0] = 1.0;"]
    return _write_classes(
        outcome.classes, n_scores, prefix, [_COMPUTE, "return 0;"], _proba_function(prefix, share)
    )
