"""Base class of both AdaBoost estimators: storage of the learners."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.forest.member_trees import LazyTrees, tree_of_subset
from spinney.models.methods import ModelMethods

__all__ = ["Learners"]


class Learners(ModelMethods):
    """Mixin for the learners: core trees (`_model`) or other estimators (`_others`)."""

    estimator_: Any
    n_features_in_: int
    warm_start = False
    _model: Any
    _seeds: list[int]
    _trees: Any
    _others: list[Any]

    def _drop_learners(self) -> None:
        for name in ("_model", "_trees", "_others"):
            self.__dict__.pop(name, None)

    def _is_native(self) -> bool:
        return "_model" in vars(self)

    @property
    def categories_(self) -> list[Any]:
        """Categories of each column, None where it is numeric; for Spinney's trees only."""
        if not self._is_native():
            raise AttributeError(
                f"{type(self).__name__} has no categories_: it is not fitted, or its learners are "
                "not Spinney's trees"
            )
        return list(self._model.schema.categories)

    @property
    def estimators_(self) -> Any:
        """The learners; each Spinney tree is created on first access."""
        if not self._is_native():
            if "_others" not in vars(self):
                raise AttributeError(f"{type(self).__name__} is not fitted: it has no estimators_")
            return self._others
        return self._trees

    @estimators_.setter
    def estimators_(self, value: Any) -> None:
        self._others = value

    def _make_fitted_tree(self, index: int) -> Any:
        tree = type(self.estimator_)(**self.estimator_.get_params(deep=False))
        tree.random_state = self._seeds[index]
        columns, model = np.arange(self.n_features_in_), self._model
        return tree_of_subset(tree, model.store.tree(index), columns, model.schema)

    def __len__(self) -> int:
        return len(self.estimators_)

    def replace_model(self, model: Any) -> None:
        """Set the fitted model, or replace it by an equivalent one."""
        super().replace_model(model)
        self._trees = LazyTrees(model.n_trees, self._make_fitted_tree)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._is_native():
            self.replace_model(self._model)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_trees", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_native() or "_others" in vars(self)
