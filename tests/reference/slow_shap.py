"""Shapley values by their definition: all coalitions of all columns, one row at a time."""

from itertools import combinations
from math import factorial

import numpy as np


def coalitions(columns):
    return [set(c) for size in range(len(columns) + 1) for c in combinations(columns, size)]


def shapley_values(worth, n_columns):
    """Shapley values of a game; `worth` takes a set of columns and gives an array."""
    told = {frozenset(c): np.asarray(worth(c)) for c in coalitions(range(n_columns))}
    out = []
    for i in range(n_columns):
        part = 0.0
        for c in coalitions([j for j in range(n_columns) if j != i]):
            s = len(c)
            weight = factorial(s) * factorial(n_columns - s - 1) / factorial(n_columns)
            part = part + weight * (told[frozenset(c | {i})] - told[frozenset(c)])
        out.append(part)
    return np.array(out), told[frozenset()]


def shapley_interactions(worth, n_columns):
    """The matrix of Shapley interaction values of a game, (n_columns, n_columns, …)."""
    told = {frozenset(c): np.asarray(worth(c)) for c in coalitions(range(n_columns))}
    values, base = shapley_values(worth, n_columns)
    out = np.zeros((n_columns, *values.shape))
    for i, j in combinations(range(n_columns), 2):
        for c in coalitions([k for k in range(n_columns) if k not in (i, j)]):
            s = len(c)
            weight = factorial(s) * factorial(n_columns - s - 2) / (2 * factorial(n_columns - 1))
            change = (
                told[frozenset(c | {i, j})]
                - told[frozenset(c | {i})]
                - told[frozenset(c | {j})]
                + told[frozenset(c)]
            )
            out[i, j] += weight * change
            out[j, i] += weight * change
    for i in range(n_columns):
        out[i, i] = values[i] - out[i].sum(axis=0)
    return out, base


def goes_left(tree, node, value):
    """Whether a value (a float, or a category's code as one) goes left."""
    if np.isnan(value):
        return bool(tree.missing_go_to_left[node])
    start = int(tree.category_start[node])
    if start < 0:
        return bool(value <= tree.threshold[node])
    code = int(value)
    return bool((int(tree.category_bits[start + code // 32]) >> (code % 32)) & 1)


def tree_worth(tree, values, cover, row):
    """The game of a tree in which rows divide as the training rows did."""

    def at(node, known):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            return values[node]
        feature = int(tree.feature[node])
        if feature in known:
            return at(left if goes_left(tree, node, row[feature]) else right, known)
        total = cover[left] + cover[right]
        share = cover[left] / total if total > 0 else 0.5
        return share * at(left, known) + (1 - share) * at(right, known)

    return lambda known: at(0, known)


def background_worth(predict_row, row, background):
    """The game in which columns that are not known have the values of each background row."""

    def worth(known):
        told = []
        for other in background:
            mixed = np.array(other, dtype=float)
            for j in known:
                mixed[j] = row[j]
            told.append(predict_row(mixed))
        return np.mean(told, axis=0)

    return worth


def leaf_value(tree, values, row):
    node = 0
    while tree.children_left[node] >= 0:
        left = goes_left(tree, node, row[int(tree.feature[node])])
        node = int(tree.children_left[node] if left else tree.children_right[node])
    return values[node]
