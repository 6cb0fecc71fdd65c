"""Accumulated local effects of two columns: what they do together, beyond what each does alone."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from spinney.inspection._answers import Answers
from spinney.inspection._effect_axis import EffectAxis
from spinney.inspection.table_view import TableView

__all__ = ["effects_of_two"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def effects_of_two(
    view: TableView, answers: Answers, rows: Rows, axes: tuple[EffectAxis, EffectAxis]
) -> tuple[Floats, NDArray[np.int64]]:
    """Return effects, (n_outputs, n_places, n_places), and how many rows are in each cell."""
    first, second = axes
    cells = (first.n_cells, second.n_cells)
    cell = np.ravel_multi_index((first.at, second.at), cells)
    counts = np.bincount(cell, minlength=cells[0] * cells[1]).reshape(cells)
    effect = np.zeros((len(answers.outputs), first.n_places, second.n_places))
    if min(effect.shape[1:]) > 1:
        changes = _mean_changes(view, answers, rows, axes)
        effect[:, 1:, 1:] = changes.cumsum(axis=1).cumsum(axis=2)
        effect = _less_main_effects(effect, counts.astype(np.float64), axes)
    return effect, counts


def _mean_changes(
    view: TableView, answers: Answers, rows: Rows, axes: tuple[EffectAxis, EffectAxis]
) -> Floats:
    """Return for each pair of steps how much the one changes what the other one does.

    The mean is over the rows that take part in both steps. A pair of steps without rows has the
    change of the nearest one that has some.
    """
    first, second = axes
    shape = (first.n_places - 1, second.n_places - 1)
    size = shape[0] * shape[1]
    sums, n_rows = np.zeros((len(answers.outputs), size)), np.zeros(size)
    for (of_first, step_first), (of_second, step_second) in product(first.steps(), second.steps()):
        both, i, k = np.intersect1d(of_first, of_second, assume_unique=True, return_indices=True)
        if len(both) == 0:
            continue
        a, b = step_first[i], step_second[k]
        changes = np.zeros((len(answers.outputs), len(both)))
        for up, right in product((0, 1), repeat=2):
            corner = {
                first.column: first.settings[a + up],
                second.column: second.settings[b + right],
            }
            sign = 1 if up == right else -1
            changes += sign * answers.predict(view.make(rows[both], corner))
        pair = np.ravel_multi_index((a, b), shape)
        sums += np.array([np.bincount(pair, one, minlength=size) for one in changes])
        n_rows += np.bincount(pair, minlength=size)
    means = (sums / np.maximum(n_rows, 1)).reshape(-1, *shape)
    empty = (n_rows == 0).reshape(shape)
    if empty.any():
        from scipy.ndimage import distance_transform_edt

        nearest = distance_transform_edt(empty, return_distances=False, return_indices=True)
        means = means[(slice(None), *nearest)]
    return means


def _less_main_effects(
    effect: Floats, counts: Floats, axes: tuple[EffectAxis, EffectAxis]
) -> Floats:
    """Take off what each of two columns does alone, and then the mean over the rows.

    What a column does alone is its accumulated effect, as that of one column, in a model that
    predicts `effect`.
    """
    first, second = axes
    zero = np.zeros((len(effect), 1))
    weights = second.by_place(first.by_step(counts, 0), 1)
    steps = (np.diff(effect, axis=1) * weights).sum(axis=2) / weights.sum(axis=1)
    of_first = np.concatenate([zero, np.cumsum(steps, axis=1)], axis=1)
    weights = first.by_place(second.by_step(counts, 1), 0)
    steps = (np.diff(effect, axis=2) * weights).sum(axis=1) / weights.sum(axis=0)
    of_second = np.concatenate([zero, np.cumsum(steps, axis=1)], axis=1)
    effect = effect - of_first[:, :, np.newaxis] - of_second[:, np.newaxis, :]
    weights = first.by_place(second.by_place(counts, 1), 0)
    centre = (effect * weights).sum(axis=(1, 2)) / weights.sum()
    return effect - centre[:, np.newaxis, np.newaxis]
