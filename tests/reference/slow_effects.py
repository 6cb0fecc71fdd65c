"""Accumulated local effects of two columns by their definition: step by step, row by row."""

import numpy as np
import pandas as pd


def set_to(rows, name, value):
    """The rows with another value in a column."""
    if isinstance(rows[name].dtype, pd.CategoricalDtype):
        value = pd.Categorical([value] * len(rows), categories=rows[name].cat.categories)
    return rows.assign(**{name: value})


class Side:
    """One of the columns: categories in their order (a list), or edges of intervals (an array)."""

    def __init__(self, name, places):
        self.name, self.places = name, places
        self.is_category = isinstance(places, list)
        self.n_steps = len(places) - 1

    def ends(self, value):
        """The places that a value lies between; those of a category are itself."""
        if self.is_category:
            return [self.places.index(value)] * 2
        k = next(k for k in range(self.n_steps) if value <= self.places[k + 1])
        return [k, k + 1]

    def takes_part(self, value, step):
        """Whether a row with this value is asked about a step."""
        if self.is_category:
            return value in (self.places[step], self.places[step + 1])
        return self.ends(value)[0] == step


def effects_of_two(predict, rows, first, second):
    """Effects, (n_places, n_places), of rows without missing values in the two columns."""
    a, b = rows[first.name].tolist(), rows[second.name].tolist()
    changes = np.zeros((first.n_steps, second.n_steps))
    for s, t in np.ndindex(changes.shape):
        part = [
            i for i in range(len(rows)) if first.takes_part(a[i], s) and second.takes_part(b[i], t)
        ]
        assert part, "without rows it is open which change counts"

        def at(k, m, part=part):
            moved = set_to(rows.iloc[part], first.name, first.places[k])
            return predict(set_to(moved, second.name, second.places[m]))

        changes[s, t] = np.mean((at(s + 1, t + 1) - at(s, t + 1)) - (at(s + 1, t) - at(s, t)))
    joint = np.zeros((len(first.places), len(second.places)))
    for k, m in np.ndindex(joint.shape):
        joint[k, m] = changes[:k, :m].sum()
    alone = np.zeros(len(first.places)), np.zeros(len(second.places))
    for s in range(first.n_steps):
        steps = [
            np.mean([joint[s + 1, m] - joint[s, m] for m in second.ends(b[i])])
            for i in range(len(rows))
            if first.takes_part(a[i], s)
        ]
        alone[0][s + 1] = alone[0][s] + np.mean(steps)
    for t in range(second.n_steps):
        steps = [
            np.mean([joint[k, t + 1] - joint[k, t] for k in first.ends(a[i])])
            for i in range(len(rows))
            if second.takes_part(b[i], t)
        ]
        alone[1][t + 1] = alone[1][t] + np.mean(steps)
    beyond = joint - alone[0][:, None] - alone[1]
    of_rows = [
        np.mean([beyond[k, m] for k in first.ends(a[i]) for m in second.ends(b[i])])
        for i in range(len(rows))
    ]
    return beyond - np.mean(of_rows)
