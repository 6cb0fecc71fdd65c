"""Accumulated local effects of two columns, without their main effects."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from spinney.inspection._effect_axis import EffectAxis
from spinney.inspection._predictor import Predictor
from spinney.inspection.table_view import TableView

__all__ = ["effects_of_two"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def effects_of_two(
    view: TableView, predictor: Predictor, rows: Rows, axes: tuple[EffectAxis, EffectAxis]
) -> tuple[Floats, NDArray[np.int64]]:
    """Return effects, (n_outputs, n_points, n_points), and row counts per cell."""
    first, second = axes
    cells = (first.n_cells, second.n_cells)
    cell = np.ravel_multi_index((first.at, second.at), cells)
    counts = np.bincount(cell, minlength=cells[0] * cells[1]).reshape(cells)
    effect = np.zeros((len(predictor.outputs), first.n_points, second.n_points))
    if min(effect.shape[1:]) > 1:
        changes = _mean_changes(view, predictor, rows, axes)
        effect[:, 1:, 1:] = changes.cumsum(axis=1).cumsum(axis=2)
        effect = _less_main_effects(effect, counts.astype(np.float64), axes)
    return effect, counts


def _mean_changes(
    view: TableView, predictor: Predictor, rows: Rows, axes: tuple[EffectAxis, EffectAxis]
) -> Floats:
    """Return the mean second difference of the predictions for each pair of steps.

    The mean is over the rows that take part in both steps. A pair of steps without rows gets the
    value of the nearest pair that has rows.
    """
    first, second = axes
    shape = (first.n_points - 1, second.n_points - 1)
    size = shape[0] * shape[1]
    sums, n_rows = np.zeros((len(predictor.outputs), size)), np.zeros(size)
    for (of_first, step_first), (of_second, step_second) in product(first.steps(), second.steps()):
        both, i, k = np.intersect1d(of_first, of_second, assume_unique=True, return_indices=True)
        if len(both) == 0:
            continue
        a, b = step_first[i], step_second[k]
        changes = np.zeros((len(predictor.outputs), len(both)))
        for up, right in product((0, 1), repeat=2):
            corner = {
                first.column: first.settings[a + up],
                second.column: second.settings[b + right],
            }
            sign = 1 if up == right else -1
            changes += sign * predictor.predict(view.make(rows[both], corner))
        pair = np.ravel_multi_index((a, b), shape)
        sums += np.array([np.bincount(pair, one, minlength=size) for one in changes])
        n_rows += np.bincount(pair, minlength=size)
    means = (sums / np.maximum(n_rows, 1)).reshape(-1, *shape)
    empty = (n_rows == 0).reshape(shape)
    if empty.any():
        nearest = distance_transform_edt(empty, return_distances=False, return_indices=True)
        means = means[(slice(None), *nearest)]
    return means


def _less_main_effects(
    effect: Floats, counts: Floats, axes: tuple[EffectAxis, EffectAxis]
) -> Floats:
    """Subtract the main effects of both columns, and then the mean over the rows.

    A column's main effect is its accumulated effect as a single column, in a model that predicts
    `effect`.
    """
    first, second = axes
    zero = np.zeros((len(effect), 1))
    weights = second.per_point(first.per_step(counts, 0), 1)
    steps = (np.diff(effect, axis=1) * weights).sum(axis=2) / weights.sum(axis=1)
    of_first = np.concatenate([zero, np.cumsum(steps, axis=1)], axis=1)
    weights = first.per_point(second.per_step(counts, 1), 0)
    steps = (np.diff(effect, axis=2) * weights).sum(axis=1) / weights.sum(axis=0)
    of_second = np.concatenate([zero, np.cumsum(steps, axis=1)], axis=1)
    effect = effect - of_first[:, :, np.newaxis] - of_second[:, np.newaxis, :]
    weights = first.per_point(second.per_point(counts, 1), 0)
    centre = (effect * weights).sum(axis=(1, 2)) / weights.sum()
    return effect - centre[:, np.newaxis, np.newaxis]
