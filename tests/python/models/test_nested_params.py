"""Parameters of the inner estimators of the models that `compare` runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from spinney.comparison.families import FAMILIES
from spinney.comparison.scaled_linear import ScaledLogisticRegression
from spinney.comparison.scaled_local import ScaledLocalRegressor
from spinney.comparison.scaled_neighbors import ScaledNeighborsClassifier
from spinney.linear_model import LogisticRegression
from spinney.tree.pruned_tree import PrunedTreeClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = (X[:, 0] + 0.5 * RNG.normal(size=120) > 0).astype(int)


def test_inner_estimator_receives_the_parameters() -> None:
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = LogisticRegression(C=0.01, max_iter=1000).fit(scaled, Y)
    model = ScaledLogisticRegression(C=0.01).fit(X, Y)
    np.testing.assert_allclose(model.estimator_.coef_, expected.coef_, rtol=1e-12)
    assert model.estimator_.max_iter == 1000  # a parameter set by the wrapper
    assert PrunedTreeClassifier(max_depth=1).fit(X, Y).estimator_.get_depth() <= 1
    neighbors = ScaledNeighborsClassifier(weights="uniform").fit(X, Y)
    assert neighbors.estimator_.weights == "uniform"
    local = ScaledLocalRegressor(degree=0, n_neighbors=7).fit(X, Y)
    assert (local.estimator_.degree, local.estimator_.n_neighbors) == (0, 7)


def test_inner_parameters_work_like_other_parameters() -> None:
    model = ScaledLogisticRegression(max_rows=50, C=0.5)
    assert model.get_params()["C"] == 0.5
    assert "penalty" not in model.get_params()
    assert "C=0.5" in repr(model)
    copy = clone(model).set_params(C=2.0, random_state=1)
    assert (copy.C, copy.random_state, copy.max_rows) == (2.0, 1, 50)
    assert model.C == 0.5
    search = GridSearchCV(ScaledLogisticRegression(), {"C": [1e-6, 1.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"C": 1.0}
    assert search.best_estimator_.estimator_.C == 1.0


def test_unknown_parameters_raise() -> None:
    with pytest.raises(TypeError, match="ScaledLogisticRegression has no parameter 'c'"):
        ScaledLogisticRegression(c=1)
    with pytest.raises(ValueError, match="Invalid parameter 'c'"):
        ScaledLogisticRegression().set_params(c=1)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_family_can_be_cloned_with_inner_parameters(family: Any, task: Any) -> None:
    if task not in family.tasks:
        pytest.skip("not for this task")
    model = family.make(task, 0, 1)
    for name in getattr(model, "learner_param_names", list)():
        model.set_params(**{name: None})
        assert clone(model).get_params()[name] is None
    assert clone(model).get_params().keys() == model.get_params().keys()
