"""Scores in C: the tables of a model and the function that computes `scores`."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.export._c_text import as_double, table
from spinney.models.form import Form, NotExpressible, TreeScores
from spinney.models.linear import LinearModel, PolynomialModel
from spinney.models.tree import Tree

__all__ = ["write_scores"]

_WALK = """\
static int find_leaf(int at, const double *row)
{
    while (at >= 0) {
        const struct node *node = &nodes[at];
        const double x = row[node->feature];
        at = goes_left(node, x) ? node->left : node->right;
    }
    return ~at;
}
"""

_THRESHOLD_SPLITS = """\
static int goes_left(const struct node *node, double x)
{
    return isnan(x) ? node->missing_left : x <= node->threshold;
}
"""

_ALL_SPLITS = """\
static int goes_left(const struct node *node, double x)
{
    const int known = n_categories[node->feature];
    if (known < 0) return isnan(x) ? node->missing_left : x <= node->threshold;
    if (!(x >= 0 && x < known)) return node->missing_left;
    return (sets[node->set + (int)x / 32] >> ((int)x % 32)) & 1;
}
"""


def write_scores(form: Form) -> tuple[str, int]:
    """Return the C code that computes the scores, and the number of scores."""
    if isinstance(form.scores, TreeScores):
        return _write_trees(form, form.scores), len(form.scores.start)
    if isinstance(form.scores, LinearModel):
        return _write_linear(form.scores), len(form.scores.coef)
    if isinstance(form.scores, PolynomialModel):
        return _write_polynomial(form.scores), len(form.scores.coef)
    raise NotExpressible(
        "C code does not support nearest neighbours, which need a search; use export_onnx instead"
    )


def _write_linear(scores: LinearModel) -> str:
    n_scores, n_features = scores.coef.shape
    parts = [
        table(f"double coef[{n_scores * n_features}]", map(as_double, scores.coef.ravel())),
        table(f"double intercept[{n_scores}]", map(as_double, scores.intercept)),
    ]
    value = "row[j]"
    if scores.center is not None:
        parts.append(table(f"double center[{n_features}]", map(as_double, scores.center)))
        value = "(row[j] - center[j])"
    parts.append(
        f"""\
static void compute_scores(const double *row, double *scores)
{{
    int k, j;
    for (k = 0; k < {n_scores}; ++k) {{
        double sum = 0.0;
        for (j = 0; j < {n_features}; ++j) sum += coef[k * {n_features} + j] * {value};
        scores[k] = sum + intercept[k];
    }}
}}
"""
    )
    return "\n".join(parts)


def _write_polynomial(scores: PolynomialModel) -> str:
    n_scores, n_terms = scores.coef.shape
    n_features, degree = len(scores.middle), scores.degree
    factors = scores.factors()
    parts = [
        table(f"double coef[{n_scores * n_terms}]", map(as_double, scores.coef.ravel())),
        table(f"double middle[{n_features}]", map(as_double, scores.middle)),
        table(f"double half[{n_features}]", map(as_double, scores.half)),
        "/* The factors of each term: degree * number of columns + column. */",
        table(f"int factors[{factors.size}]", map(str, factors.ravel().tolist())),
    ]
    parts.append(
        f"""\
static void compute_scores(const double *row, double *scores)
{{
    double powers[{(max(degree, 1) + 1) * n_features}]; /* Legendre polynomials by degree */
    int i, j, k;
    for (j = 0; j < {n_features}; ++j) {{
        const double x = (row[j] - middle[j]) / half[j];
        powers[j] = 1.0;
        powers[{n_features} + j] = x;
        for (i = 2; i <= {degree}; ++i) {{
            powers[i * {n_features} + j] = (powers[(i - 1) * {n_features} + j] * x * (2 * i - 1)
                - powers[(i - 2) * {n_features} + j] * (i - 1)) / i;
        }}
    }}
    for (k = 0; k < {n_scores}; ++k) scores[k] = 0.0;
    for (i = 0; i < {n_terms}; ++i) {{
        double term = 1.0;
        for (j = 0; j < {factors.shape[1]}; ++j) {{
            term *= powers[factors[i * {factors.shape[1]} + j]];
        }}
        for (k = 0; k < {n_scores}; ++k) scores[k] += coef[k * {n_terms} + i] * term;
    }}
}}
"""
    )
    return "\n".join(parts)


def _write_trees(form: Form, scores: TreeScores) -> str:
    n_scores, n_trees = len(scores.start), len(scores.trees)
    nodes: list[str] = []
    roots: list[int] = []
    set_words: list[int] = []
    leaves: list[Any] = []
    n_leaves = 0
    for tree, values in zip(scores.trees, scores.values, strict=True):
        is_leaf = tree.children_left < 0
        name = np.where(is_leaf, ~(n_leaves + np.cumsum(is_leaf) - 1), 0)
        name[~is_leaf] = len(nodes) + np.arange(int((~is_leaf).sum()))
        roots.append(int(name[0]))
        nodes += _write_nodes(tree, name, set_words, form.has_categories)
        leaves.append(values[is_leaf])
        n_leaves += int(is_leaf.sum())
    parts = [_node_type(form.has_categories)]
    parts.append(table("struct node nodes[]", nodes or ["{0}"]))
    parts.append(table("int roots[]", map(str, roots)))
    held = np.concatenate(leaves)
    parts.append(table("double leaves[]", map(as_double, held.ravel().tolist())))
    parts.append(table(f"double start[{n_scores}]", map(as_double, scores.start)))
    if form.has_categories:
        counts = [-1 if values is None else len(values) for values in form.categories]
        parts.append(table("int n_categories[]", map(str, counts)))
        parts.append(table("unsigned long sets[]", (f"{word}UL" for word in set_words or [0])))
        parts.append(_ALL_SPLITS)
    else:
        parts.append(_THRESHOLD_SPLITS)
    parts.append(_WALK)
    add = f"for (k = 0; k < {n_scores}; ++k) scores[k] += leaves[leaf * {n_scores} + k];"
    if held.shape[1] < n_scores:  # every tree adds to only one score
        targets = [str(target) for target in scores.adds_to]
        parts.append(table("int adds_to[]", targets))
        add = "scores[adds_to[t]] += leaves[leaf];"
    parts.append(
        f"""\
static void compute_scores(const double *row, double *scores)
{{
    int k, t;
    for (k = 0; k < {n_scores}; ++k) scores[k] = start[k];
    for (t = 0; t < {n_trees}; ++t) {{
        const long leaf = find_leaf(roots[t], row);
        {add}
    }}
}}
"""
    )
    return "\n".join(parts)


def _write_nodes(tree: Tree, name: Any, set_words: list[int], has_sets: bool) -> list[str]:
    """Return the inner nodes of a tree as C; append category sets to `set_words`."""
    inner = np.flatnonzero(tree.children_left >= 0)
    by_set = tree.category_start[inner] >= 0
    columns = [
        map(as_double, np.where(by_set, 0.0, tree.threshold[inner]).tolist()),
        name[tree.children_left[inner]].tolist(),
        name[tree.children_right[inner]].tolist(),
        tree.feature[inner].tolist(),
        (tree.missing_go_to_left[inner] != 0).astype(int).tolist(),
    ]
    if has_sets:
        starts = np.zeros(len(inner), dtype=int)
        for i in np.flatnonzero(by_set):
            starts[i] = len(set_words)
            set_words += _bit_words(tree.category_masks(int(inner[i]))[0])
        columns.append(starts.tolist())
    return [f"{{{', '.join(map(str, cells))}}}" for cells in zip(*columns, strict=True)]


def _node_type(has_sets: bool) -> str:
    last = "    int set; /* index of the set of categories that go left */\n"
    return f"""\
/* A negative child is a leaf with the number ~child. */
struct node {{
    double threshold; /* x <= threshold goes left */
    int left, right;
    int feature;
    int missing_left;
{last if has_sets else ""}}};
"""


def _bit_words(goes_left: Any) -> list[int]:
    """Pack booleans into 32-bit set_words."""
    n_words = (len(goes_left) + 31) // 32
    bits = np.zeros(n_words * 32, dtype=np.uint64)
    bits[: len(goes_left)] = goes_left
    return [int(word) for word in (bits.reshape(-1, 32) << np.arange(32, dtype=np.uint64)).sum(1)]
