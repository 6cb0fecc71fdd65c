"""Base class of the classification forests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import StrOptions

from spinney.conformal.group_limits import categories_of
from spinney.conformal.mixins import HeldOut, SetMixin, subsample_rows
from spinney.data.table import Table
from spinney.forest.base import BaseForest, ForestData
from spinney.forest.out_of_bag import grows_whole, votes_of_all_trees
from spinney.models.forest_store import ForestStore
from spinney.models.tree_ensembles import AveragedTrees
from spinney.runtime.threads import effective_n_jobs

__all__ = ["ForestClassifier"]

_MAX_OOB_ROWS = 2_500  # out-of-bag rows for prediction sets; more would slow down the fit


class ForestClassifier(SetMixin, ClassifierMixin, BaseForest):
    """Base class of the classification forests; not to be used directly."""

    _parameter_constraints: dict[str, Any] = {
        **BaseForest._parameter_constraints,
        "criterion": [StrOptions({"gini", "entropy", "log_loss", "misclassification"})],
        "class_weight": [StrOptions({"balanced", "balanced_subsample"}), dict, list, None],
        "voting": [StrOptions({"soft", "hard"})],
    }

    def fitted_model(self) -> AveragedTrees:
        """Return the fitted model as an immutable value, without the estimator's methods.

        Returns
        -------
        AveragedTrees
            The trees; `voting` is that of the estimator at the time of the call.
        """
        model, hard = super().fitted_model(), self.voting == "hard"
        return model if model.hard == hard else replace(model, hard=hard)

    def _needs_out_of_bag(self) -> bool:
        return bool(self.oob_score) or self._keeps_held_out()

    def _keeps_held_out(self) -> bool:
        """Whether to keep out-of-bag rows for sets; a continued fit would need all of them."""
        return bool(self.bootstrap) and not self.warm_start and self.n_outputs_ == 1

    def _out_of_bag_subset(self, n_rows: int) -> list[int]:
        if self.oob_score or n_rows <= _MAX_OOB_ROWS:
            return []
        rows: list[int] = subsample_rows(n_rows, _MAX_OOB_ROWS).tolist()
        return rows

    def _set_results(self, data: ForestData, store: ForestStore, n_more: int, counts: Any) -> None:
        super()._set_results(data, store, n_more, counts)
        if not self._keeps_held_out():
            return
        self._keep_held_out(data, len(store))
        if not self.oob_score:
            self._out_of_bag = None

    def _keep_held_out(self, data: ForestData, n_all: int) -> None:
        """Keep the out-of-bag predictions of some rows for prediction sets."""
        kept = self._out_of_bag
        assert kept is not None
        is_used = kept.n_trees > 0
        if data.sample_weight is not None:
            is_used &= data.sample_weight > 0
        rows = np.flatnonzero(is_used)
        rows = rows[subsample_rows(len(rows))]
        if not len(rows):
            return
        shares = kept.sums[rows] / kept.n_trees[rows, None]
        codes = data.targets[rows, 0].astype(np.int32)
        if self.voting == "hard" or grows_whole(self):
            shares = votes_of_all_trees(shares, codes, kept.n_trees[rows], n_all)
        # Class weights change the trees, but not the frequency of the rows.
        weights = None if data.sample_weight is None else data.sample_weight[rows]
        self._held_out = HeldOut("rows out of the bag", codes, shares, weights=weights, rows=rows)

    def _fit_groups(self, table: Table) -> None:
        held_out = vars(self).get("_held_out")
        if held_out is not None:
            categories = categories_of(table.take(held_out.rows), self._model.schema)
            self._held_out = replace(held_out, categories=categories)

    def _reason_without_rows(self) -> str:
        return " (out-of-bag rows need bootstrap=True, warm_start=False and one output)"

    def _set_oob_score_and_attributes(self, X: Any, y: Any) -> None:
        means = self._oob_means()
        classes = [self._of_output(means, k).argmax(axis=1) for k in range(self.n_outputs_)]
        predicted = np.column_stack(classes)
        score = self.oob_score if callable(self.oob_score) else accuracy_score
        if self.n_outputs_ == 1:
            self.oob_score_ = score(y[:, 0], predicted[:, 0])
        else:
            self.oob_score_ = score(y.astype(np.int64), predicted)

    @property
    def oob_decision_function_(self) -> NDArray[np.float64]:
        """Class probabilities of each training row from its out-of-bag trees."""
        if "oob_score_" not in vars(self) or self._out_of_bag is None:
            raise AttributeError("oob_decision_function_ needs oob_score=True in fit")
        values = self._out_of_bag.means()
        if self.n_outputs_ == 1:
            return values
        # (n_rows, n_classes, n_outputs), as in scikit-learn
        return values.reshape(len(values), self.n_outputs_, -1).transpose(0, 2, 1)

    def _of_output(self, values: Any, output: int) -> Any:
        """Return the columns of one output."""
        start = output * (values.shape[1] // self.n_outputs_)
        return values[:, start : start + np.atleast_1d(self.n_classes_)[output]]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            The class with the largest mean probability, or (``voting="hard"``) the most votes.
            Ties go to the first class.
        """
        rows = self._read_rows(X)
        values = self.fitted_model().raw_scores(rows, effective_n_jobs(self.n_jobs))
        if self.n_outputs_ == 1:
            return np.asarray(self.classes_[values.argmax(axis=1)])
        out = np.empty((len(values), self.n_outputs_), dtype=self.classes_[0].dtype)
        for k, classes in enumerate(self.classes_):
            out[:, k] = classes[self._of_output(values, k).argmax(axis=1)]
        return out

    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or list of ndarray
            Mean of the probabilities of the trees, or (``voting="hard"``) shares of the votes. For
            several outputs, a list with one array per output.
        """
        values = self._mean_scores(X)
        if self.n_outputs_ == 1:
            return values
        return [self._of_output(values, k) for k in range(self.n_outputs_)]

    def predict_log_proba(self, X: Any) -> Any:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), or list of ndarray
            The logarithm of `predict_proba`.
        """
        probabilities = self.predict_proba(X)
        if self.n_outputs_ == 1:
            return np.log(probabilities)
        return [np.log(p) for p in probabilities]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
