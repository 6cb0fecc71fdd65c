"""Learning curves: the metric by the number of training rows."""

from __future__ import annotations

import numpy as np

from spinney.comparison.comparison import Estimate
from spinney.comparison.comparison_data import ComparisonData
from spinney.comparison.sample import draw_rows
from spinney.data.rows import take_rows
from spinney.report.evidence import LearningCurve

__all__ = ["learning_seconds", "measure_learning_curve"]

_SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
_FOLDS = 3
_FEWEST_ROWS = 20


def learning_seconds(compared: ComparisonData, name: str) -> float:
    """Estimate the time to calculate the learning curve of a model, in seconds."""
    trials = compared.trials[name][:_FOLDS]
    return sum(_SHARES) * sum(trial.seconds for trial in trials)


def measure_learning_curve(compared: ComparisonData, name: str) -> LearningCurve:
    """Cross-validate a model on subsets of the training rows of a few folds.

    The last point, with all training rows, is the result of the comparison on these folds.
    """
    splits = compared.splits[:_FOLDS]
    fewest = min(len(train) for train, _ in splits)
    points: list[tuple[int, Estimate]] = []
    for share in _SHARES:
        n_drawn = int(fewest * share)
        if n_drawn < _FEWEST_ROWS:
            continue
        scores = []
        for number, (train, test) in enumerate(splits):
            rows = train[draw_rows(compared.y[train], n_drawn, number)]
            if compared.classes is not None and len(np.unique(compared.y[rows])) < 2:
                break
            model = compared.make(name).fit(take_rows(compared.X, rows), compared.y[rows])
            tested = take_rows(compared.X, test), compared.y[test]
            scores.append(compared.measure.of(model, *tested, compared.classes))
        else:
            points.append((n_drawn, Estimate.from_folds(scores)))
    whole = [trial.score for trial in compared.trials[name][: len(splits)]]
    points.append((int(np.mean([len(train) for train, _ in splits])), Estimate.from_folds(whole)))
    return LearningCurve(
        name,
        [size for size, _ in points],
        [estimate.mean for _, estimate in points],
        [estimate.se for _, estimate in points],
    )
