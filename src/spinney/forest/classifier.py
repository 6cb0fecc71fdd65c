"""Forests that tell classes."""

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
from spinney.forest.base import BaseForest
from spinney.forest.out_of_bag import as_of_all, grows_whole

__all__ = ["ForestClassifier"]

_FOLLOWED = 2_500  # rows out of the bag that sets are made from: more would cost time in fit


class ForestClassifier(SetMixin, ClassifierMixin, BaseForest):
    """Base class of the classifying forests; not to be used directly."""

    _parameter_constraints: dict[str, Any] = {
        **BaseForest._parameter_constraints,
        "criterion": [StrOptions({"gini", "entropy", "log_loss", "misclassification"})],
        "class_weight": [StrOptions({"balanced", "balanced_subsample"}), dict, list, None],
        "voting": [StrOptions({"soft", "hard"})],
    }

    def _follows_out_of_bag(self) -> bool:
        return bool(self.oob_score) or self._keeps_some()

    def _keeps_some(self) -> bool:
        """Whether rows out of the bag are kept for sets; what is continued would need all."""
        return bool(self.bootstrap) and not self.warm_start and self.n_outputs_ == 1

    def _followed(self, n_rows: int) -> list[int]:
        if self.oob_score or n_rows <= _FOLLOWED:
            return []
        rows: list[int] = subsample_rows(n_rows, _FOLLOWED).tolist()
        return rows

    def _finish(
        self, targets: Any, n_classes: Any, n_more: int, told: Any, sample_weight: Any
    ) -> None:
        super()._finish(targets, n_classes, n_more, told, sample_weight)
        if not self._keeps_some():
            return
        counts = self._oob_n_trees > 0
        if sample_weight is not None:
            counts &= sample_weight > 0
        rows = np.flatnonzero(counts)
        rows = rows[subsample_rows(len(rows))]
        if len(rows):
            shares = self._oob_sums[rows] / self._oob_n_trees[rows, None]
            codes = targets[rows, 0].astype(np.int32)
            if self.voting == "hard" or grows_whole(self):
                shares = as_of_all(shares, codes, self._oob_n_trees[rows], len(self._store))
            # Weights of classes make a forest look at them, and no row more frequent.
            weights = None if sample_weight is None else sample_weight[rows]
            self._held_out = HeldOut(
                "rows out of the bag", codes, shares, weights=weights, rows=rows
            )
        if not self.oob_score:
            for name in [name for name in vars(self) if name.startswith("_oob")]:
                delattr(self, name)

    def _learn_groups(self, table: Table) -> None:
        held = vars(self).get("_held_out")
        if held is not None and self._schema.has_categories:
            own = categories_of(table.take(held.rows), self._schema)
            self._held_out = replace(held, categories=own)

    def _why_none(self) -> str:
        return " (rows out of the bag: bootstrap=True, warm_start=False, one output)"

    def _set_oob_score_and_attributes(self, X: Any, y: Any) -> None:
        values = self._oob_values()
        classes = [self._of_output(values, k).argmax(axis=1) for k in range(self.n_outputs_)]
        predicted = np.column_stack(classes)
        score = self.oob_score if callable(self.oob_score) else accuracy_score
        if self.n_outputs_ == 1:
            self.oob_score_ = score(y[:, 0], predicted[:, 0])
        else:
            self.oob_score_ = score(y.astype(np.int64), predicted)

    @property
    def oob_decision_function_(self) -> NDArray[np.float64]:
        """Class probabilities of each row by the trees that did not see it."""
        if "oob_score_" not in vars(self):
            raise AttributeError("oob_decision_function_ needs oob_score=True in fit")
        values = self._oob_sums / np.maximum(self._oob_n_trees, 1)[:, None]
        if self.n_outputs_ == 1:
            return values
        # (n_rows, n_classes, n_outputs), as scikit-learn has it
        return values.reshape(len(values), self.n_outputs_, -1).transpose(0, 2, 1)

    def _of_output(self, values: Any, output: int) -> Any:
        """Columns of one output."""
        width = values.shape[1] // self.n_outputs_
        start = output * width
        return values[:, start : start + self._n_classes[output]]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            The class with the largest mean probability, or (``voting="hard"``) most votes; of
            equals the first.
        """
        values = self._sum_predictions(X)
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
        ndarray of shape (n_rows, n_classes), or list of such
            Mean of the trees' probabilities, or (``voting="hard"``) shares of the votes; a list
            with several outputs.
        """
        values = self._sum_predictions(X)
        values /= len(self._store)
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
        ndarray of shape (n_rows, n_classes), or list of such
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
