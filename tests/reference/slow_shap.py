"""Reference implementation of Shapley values with all coalitions of columns."""

from itertools import combinations
from math import factorial

import numpy as np


def coalitions(columns):
    return [set(c) for size in range(len(columns) + 1) for c in combinations(columns, size)]


def shapley_values(worth, n_columns):
    """Return the Shapley values of a game; `worth` maps a set of columns to an array."""
    worths = {
        frozenset(coalition): np.asarray(worth(coalition))
        for coalition in coalitions(range(n_columns))
    }
    values = []
    for i in range(n_columns):
        value = 0.0
        for coalition in coalitions([j for j in range(n_columns) if j != i]):
            size = len(coalition)
            weight = factorial(size) * factorial(n_columns - size - 1) / factorial(n_columns)
            value = value + weight * (
                worths[frozenset(coalition | {i})] - worths[frozenset(coalition)]
            )
        values.append(value)
    return np.array(values), worths[frozenset()]


def shapley_interactions(worth, n_columns):
    """Return the Shapley interaction values of a game, (n_columns, n_columns, …)."""
    worths = {
        frozenset(coalition): np.asarray(worth(coalition))
        for coalition in coalitions(range(n_columns))
    }
    values, base = shapley_values(worth, n_columns)
    matrix = np.zeros((n_columns, *values.shape))
    for i, j in combinations(range(n_columns), 2):
        for coalition in coalitions([k for k in range(n_columns) if k not in (i, j)]):
            size = len(coalition)
            weight = (
                factorial(size) * factorial(n_columns - size - 2) / (2 * factorial(n_columns - 1))
            )
            change = (
                worths[frozenset(coalition | {i, j})]
                - worths[frozenset(coalition | {i})]
                - worths[frozenset(coalition | {j})]
                + worths[frozenset(coalition)]
            )
            matrix[i, j] += weight * change
            matrix[j, i] += weight * change
    for i in range(n_columns):
        matrix[i, i] = values[i] - matrix[i].sum(axis=0)
    return matrix, base


def goes_left(tree, node, value):
    """Return whether a value (a number, or a category's code) goes left."""
    if np.isnan(value):
        return bool(tree.missing_go_to_left[node])
    start = int(tree.category_start[node])
    if start < 0:
        return bool(value <= tree.threshold[node])
    code = int(value)
    return bool((int(tree.category_bits[start + code // 32]) >> (code % 32)) & 1)


def tree_worth(tree, values, cover, row):
    """Return the path-dependent game of a tree.

    At a split on an unknown column the value is the mean of both children, weighted by `cover`.
    """

    def expectation(node, known):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            return values[node]
        feature = int(tree.feature[node])
        if feature in known:
            return expectation(left if goes_left(tree, node, row[feature]) else right, known)
        total = cover[left] + cover[right]
        left_share = cover[left] / total if total > 0 else 0.5
        return left_share * expectation(left, known) + (1 - left_share) * expectation(right, known)

    return lambda known: expectation(0, known)


def background_worth(predict_row, row, background):
    """Return the game in which unknown columns have the values of each background row."""

    def worth(known):
        predictions = []
        for other in background:
            mixed = np.array(other, dtype=float)
            for j in known:
                mixed[j] = row[j]
            predictions.append(predict_row(mixed))
        return np.mean(predictions, axis=0)

    return worth


def leaf_value(tree, values, row):
    node = 0
    while tree.children_left[node] >= 0:
        left = goes_left(tree, node, row[int(tree.feature[node])])
        node = int(tree.children_left[node] if left else tree.children_right[node])
    return values[node]
