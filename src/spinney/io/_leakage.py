"""Detection of target leakage: columns that predict the target alone."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.io._column_kinds import ColumnKinds, as_arrow

__all__ = ["suspect_leakage"]

_MAX_ROWS = 20_000
_MIN_ROWS = 50
_MAX_COLUMNS = 500  # one tree is fitted per column; of more columns, the most related are used
_MAX_CLASSES = 1_000  # trees with more classes are slow and useless
_MAX_ERROR = 0.01  # largest error rate on the held-out rows
_MAX_LEFT = {"classification": 0.05, "regression": 0.001}  # largest share of the baseline's error
_MIN_OTHERS = 10  # smallest number of held-out rows that the baseline predicts wrongly


def suspect_leakage(
    frame: Any, y: Any, task: Literal["classification", "regression"], kinds: ColumnKinds
) -> list[tuple[str, float]]:
    """Find columns each of which predicts the target nearly perfectly by itself.

    Such a column is often a copy of the target, or was recorded after it. For each column a
    decision tree is fitted on half of the rows (at most 20,000 in all) and predicts the others. In
    classification a column is suspicious if the tree's error rate is below 1 %, and below a
    twentieth of the error rate of the most frequent class. In regression it is suspicious if the
    tree leaves less than a thousandth of the variance. If there are more than 500 columns, the
    500 most related to the target are tested; with more than 1,000 classes no column is.

    Parameters
    ----------
    frame : pyarrow.Table or any data frame
        The rows, with a value of the target in each.
    y : array of shape (n_rows,)
        The target.
    task : {"classification", "regression"}
    kinds : ColumnKinds
        The kinds of the columns.

    Returns
    -------
    list of (str, float)
        The suspicious columns, the worst first, with the share of the baseline's errors (or of
        the variance) that each removes by itself.
    """
    y = np.asarray(y)
    frame = as_arrow(frame)
    if len(y) != frame.num_rows:
        raise ValueError(f"y: expected {frame.num_rows} values, one for each row, got {len(y)}")
    if len(y) < _MIN_ROWS:
        return []
    rows = np.random.default_rng(0).permutation(len(y))[:_MAX_ROWS]
    y = y[rows]
    if task == "classification":
        y = np.unique(y, return_inverse=True)[1]
        if y.max() >= _MAX_CLASSES:
            return []
    table = kinds.prepare(frame.select(kinds.used).take(pa.array(rows)))
    half = len(y) // 2
    baseline = _errors(task, y[half:], _guess(task, y[:half]))
    if task == "classification" and baseline.sum() < _MIN_OTHERS:
        return []
    if not baseline.sum() > 0:
        return []
    names = table.column_names
    if len(names) > _MAX_COLUMNS:
        names = _most_related(table, y)
    found = []
    for name in names:
        predicted = _predict(task, table.select([name]), y, half)
        errors = _errors(task, y[half:], predicted)
        remaining = errors.sum() / baseline.sum()
        few = task == "regression" or errors.mean() < _MAX_ERROR
        if few and remaining < _MAX_LEFT[task]:
            found.append((name, float(1 - remaining)))
    return sorted(found, key=lambda item: -item[1])


def _guess(task: str, y: NDArray[Any]) -> Any:
    return np.bincount(y).argmax() if task == "classification" else y.mean()


def _errors(task: str, y: NDArray[Any], predicted: Any) -> NDArray[np.float64]:
    if task == "classification":
        return (y != predicted).astype(np.float64)
    return np.asarray((y - predicted) ** 2, dtype=np.float64)


def _predict(task: str, column: pa.Table, y: NDArray[Any], half: int) -> Any:
    # Imported here, as reading a table needs no estimators.
    from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

    tree: Any = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    model = tree(min_samples_leaf=2, random_state=0, n_jobs=1)
    model.fit(column.slice(0, half), y[:half])
    return model.predict(column.slice(half))


def _most_related(table: pa.Table, y: NDArray[Any]) -> list[str]:
    """Return the columns whose 20 groups explain most of the target's variance."""
    rows = min(len(y), 1000)
    target = y[:rows].astype(np.float64)
    target = target - target.mean()
    scores = []
    for column in table.slice(0, rows).columns:
        if pa.types.is_dictionary(column.type):
            groups = column.combine_chunks().indices.fill_null(-1).to_numpy() + 1
        else:
            values = np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan))
            groups = np.argsort(np.argsort(values, kind="stable")) * 20 // rows
        counts = np.bincount(groups)
        sums = np.bincount(groups, weights=target)
        # A group of one row would explain that row perfectly, so it does not count.
        scores.append(float((sums**2 / np.maximum(counts, 1) * (counts > 1)).sum()))
    order = np.argsort(-np.array(scores), kind="stable")[:_MAX_COLUMNS]
    names = table.column_names
    return [names[number] for number in np.sort(order)]
