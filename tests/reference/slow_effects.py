"""Reference implementation of the accumulated local effects of two columns."""

import numpy as np
import pandas as pd


def set_to(rows, name, value):
    """Return the rows with one column set to a value."""
    if isinstance(rows[name].dtype, pd.CategoricalDtype):
        value = pd.Categorical([value] * len(rows), categories=rows[name].cat.categories)
    return rows.assign(**{name: value})


class Side:
    """The grid of one column: ordered categories (a list), or interval edges (an array)."""

    def __init__(self, name, positions):
        self.name, self.positions = name, positions
        self.is_category = isinstance(positions, list)
        self.n_steps = len(positions) - 1

    def ends(self, value):
        """Return the positions on both sides of a value; for a category both are its own."""
        if self.is_category:
            return [self.positions.index(value)] * 2
        k = next(k for k in range(self.n_steps) if value <= self.positions[k + 1])
        return [k, k + 1]

    def contributes_to(self, value, step):
        """Return whether a row with this value contributes to a step."""
        if self.is_category:
            return value in (self.positions[step], self.positions[step + 1])
        return self.ends(value)[0] == step


def effects_of_two(predict, rows, first, second):
    """Return the effects, (n_positions, n_positions), of rows without missing values."""
    a, b = rows[first.name].tolist(), rows[second.name].tolist()
    changes = np.zeros((first.n_steps, second.n_steps))
    for s, t in np.ndindex(changes.shape):
        indices = [
            i
            for i in range(len(rows))
            if first.contributes_to(a[i], s) and second.contributes_to(b[i], t)
        ]
        assert indices, "the change of a step without rows is undefined"

        def predict_at(k, m, indices=indices):
            moved = set_to(rows.iloc[indices], first.name, first.positions[k])
            return predict(set_to(moved, second.name, second.positions[m]))

        changes[s, t] = np.mean(
            (predict_at(s + 1, t + 1) - predict_at(s, t + 1))
            - (predict_at(s + 1, t) - predict_at(s, t))
        )
    joint = np.zeros((len(first.positions), len(second.positions)))
    for k, m in np.ndindex(joint.shape):
        joint[k, m] = changes[:k, :m].sum()
    main_effects = np.zeros(len(first.positions)), np.zeros(len(second.positions))
    for s in range(first.n_steps):
        steps = [
            np.mean([joint[s + 1, m] - joint[s, m] for m in second.ends(b[i])])
            for i in range(len(rows))
            if first.contributes_to(a[i], s)
        ]
        main_effects[0][s + 1] = main_effects[0][s] + np.mean(steps)
    for t in range(second.n_steps):
        steps = [
            np.mean([joint[k, t + 1] - joint[k, t] for k in first.ends(a[i])])
            for i in range(len(rows))
            if second.contributes_to(b[i], t)
        ]
        main_effects[1][t + 1] = main_effects[1][t] + np.mean(steps)
    interaction = joint - main_effects[0][:, None] - main_effects[1]
    by_row = [
        np.mean([interaction[k, m] for k in first.ends(a[i]) for m in second.ends(b[i])])
        for i in range(len(rows))
    ]
    return interaction - np.mean(by_row)
