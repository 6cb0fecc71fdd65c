"""The core checks the options of a booster."""

from __future__ import annotations

import numpy as np
import pytest

from spinney import _core
from spinney.ensemble import GradientBoostingRegressor
from support.boost_options import boost_options

OUT_OF_RANGE = {
    "learning_rate": [0.0, -1.0, np.inf, np.nan],
    "subsample": [0.0, 1.5, np.nan],
    "max_features_tree": [0.0, 2.0],
    "max_features_level": [0.0, 2.0],
    "max_features": [0.0, 2.0],
    "l2_regularization": [-1.0, np.nan],
    "l1_regularization": [-1.0, np.inf],
    "min_split_gain": [-1e-9],
    "min_hessian_leaf": [-1e-9],
    "max_leaf_nodes": [0],
    "monotonic_cst": [[0, 2]],
    "n_scores": [0],
    "n_targets": [3],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in OUT_OF_RANGE.items() for value in values],
)
def test_values_out_of_range_raise(name, value):
    boost_options()
    with pytest.raises(ValueError, match=rf"{name} must be .*; got"):
        boost_options(**{name: value})


def test_levels_need_one_score_each():
    boost_options(loss="quantile", levels=[0.1, 0.9], n_scores=2)
    with pytest.raises(ValueError, match=r"len\(levels\) must be 0 or n_scores; got 3"):
        boost_options(loss="quantile", levels=[0.1, 0.5, 0.9], n_scores=2)


@pytest.mark.parametrize("group_starts", [[], [3, 0]])
def test_group_starts_ascend(group_starts):
    boost_options(loss="ndcg", group_starts=[0, 3, 7])
    with pytest.raises(ValueError, match="group_starts must be ascending"):
        boost_options(loss="ndcg", group_starts=group_starts)


@pytest.mark.parametrize("changes", [{"depth": 3}, {"min_samples_leaf": -1}, {"levels": ["a"]}])
def test_unknown_options_and_wrong_types_raise(changes):
    with pytest.raises(TypeError):
        boost_options(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"monotonic_cst": [1]}, r"len\(monotonic_cst\) must be the number of columns; got 1"),
        ({"interaction_cst": [[0], [2]]}, "interaction_cst must be numbers of columns; got 2"),
    ],
)
def test_options_for_other_columns_raise(changes, message):
    X = np.arange(20.0).reshape(10, 2)
    store = GradientBoostingRegressor(n_estimators=1).fit(X, X[:, 0]).fitted_model().store
    matrix = _core.bin_given([(False, np.array([0.5])), (False, np.array([0.5]))], 10)
    with pytest.raises(ValueError, match=message):
        _core.boost(
            matrix,
            None,
            X[:, 0].copy(),
            None,
            np.zeros(10),
            None,
            boost_options(**changes),
            store.core,
            first_round=0,
            n_rounds=1,
            n_threads=1,
        )
