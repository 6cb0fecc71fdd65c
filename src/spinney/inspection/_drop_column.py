"""Drop-column importance: the decrease of the score without a column."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.validation import has_fit_parameter

from spinney.data.sklearn_versions import safe_indexing
from spinney.inspection._row_scores import find_score
from spinney.inspection.importances import Importances, score_name
from spinney.inspection.permutation import read_groups
from spinney.inspection.table_view import TableView, as_targets, as_weights
from spinney.model_selection.refits import fit_again

__all__ = ["drop_column_importance"]


def drop_column_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    columns: Any = None,
    scoring: Any = None,
    sample_weight: Any = None,
    cv: Any = 5,
    n_jobs: int | None = None,
    verbose: int = 0,
    callbacks: Any = None,
) -> Importances:
    """Measure how much the score decreases in fits without a column or group.

    In every fold the model is fitted with all columns and once without each column, which takes
    long. Columns that duplicate others have no importance here, because the model can do without
    them; drop them as a group to measure them together.

    Parameters
    ----------
    model : estimator
        The model; it is cloned, not changed.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        Their targets.
    columns : list of columns or of lists of columns, or dict of name to columns, default=None
        The columns that are dropped, by name or number; a list within the list is a group, and so
        is every value of a dict. None: every column by itself.
    scoring : str or callable, default=None
        The score whose decrease is measured; None means accuracy, or R² for regressors. For several
        targets, that is the share of rows in which all of them are right, or the mean of their R².
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows, in the fits and in the score.
    cv : int, cross-validation generator or iterable, default=5
        The cross-validation scheme.
    n_jobs : int or None, default=None
        The number of threads.
    verbose : int, default=0
        1 shows a progress bar.
    callbacks : callable, list of callables or None, default=None
        Called with (fits done, fits).

    Returns
    -------
    Importances
        Means over the folds. Standard errors are corrected for the overlap of training sets (Nadeau
        and Bengio, 2003).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney.inspection import drop_column_importance
    >>> from spinney.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    >>> groups = {"sepal": [0, 1], "petal": [2, 3]}
    >>> importances = drop_column_importance(tree, X, y, columns=groups)
    >>> importances.names[importances.largest(1)[0]]
    'petal'
    """
    view = TableView(X)
    y = as_targets(y, view.n_rows)
    weights = as_weights(sample_weight, view.n_rows)
    if weights is not None and not has_fit_parameter(model, "sample_weight"):
        raise TypeError(
            f"sample_weight: expected a model whose fit takes it, got {type(model).__name__}"
        )
    names, groups = read_groups(view, columns)
    for group in groups:
        if len(group) == view.n_columns:
            raise ValueError(
                "columns: expected groups that keep a column, got one with all columns"
            )
    table = view.make(None, {})
    folds = list(check_cv(cv, y, classifier=is_classifier(model)).split(table, y))
    if len(folds) < 2:
        raise ValueError(f"cv: expected two folds or more, got {len(folds)}")
    dropped: list[list[int]] = [[], *groups]

    def run(i: int, fresh: Any) -> float:
        fold, number = divmod(i, len(dropped))
        train, test = folds[fold]
        kept = view.without(dropped[number])
        more = {} if weights is None else {"sample_weight": weights[train]}
        fresh.fit(safe_indexing(kept, train), y[train], **more)
        test_weights = None if weights is None else as_weights(weights[test], len(test))
        return find_score(fresh, scoring, y[test], test_weights)(safe_indexing(kept, test))

    n_fits = len(folds) * len(dropped)
    results = fit_again(
        "drop_column_importance",
        clone(model),
        n_fits,
        run,
        n_jobs=n_jobs,
        verbose=verbose,
        callbacks=callbacks,
    )
    scores = np.array(list(results)).reshape(len(folds), len(dropped))
    each = (scores[:, :1] - scores[:, 1:]).T
    ratio = np.mean([len(test) / len(train) for train, test in folds])
    error = np.sqrt(each.var(axis=1, ddof=1) * (1 / len(folds) + ratio))
    kind = f"decrease of the {score_name(model, scoring)} without the column"
    return Importances(names, each.mean(axis=1), error, kind, each)
