"""A warm start requires the outputs and classes of the earlier fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from spinney.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.linear_model import LogisticRegression, Perceptron

X = np.random.default_rng(0).normal(size=(200, 4))
TWO = (X[:, 0] > 0).astype(int)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
CLASS_CHANGES = {
    "one more": (TWO, THREE),
    "one less": (THREE, TWO),
    "a subset": (THREE, 2 * TWO),
    "other labels": (TWO, TWO + 5),
    "other strings": (np.array(["a", "b"])[TWO], np.array(["a", "c"])[TWO]),
    "one class": (TWO, np.zeros(200, dtype=int)),
}
CLASSIFIERS = {
    "boosting": GradientBoostingClassifier(n_estimators=5),
    "boosting with automatic rounds": GradientBoostingClassifier(),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=5),
    "forest": RandomForestClassifier(n_estimators=5),
    "extra trees": ExtraTreesClassifier(n_estimators=5),
    "bagging": BaggingClassifier(n_estimators=5),
    "bagging of neighbours": BaggingClassifier(KNeighborsClassifier(), n_estimators=5),
}
REGRESSORS = [
    GradientBoostingRegressor,
    RandomForestRegressor,
    ExtraTreesRegressor,
    BaggingRegressor,
]


def _add_rounds(model):
    for name in ("n_estimators", "max_iter"):
        if isinstance(model.get_params().get(name), int):
            model.set_params(**{name: 8})


@pytest.mark.parametrize("change", CLASS_CHANGES)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_other_classes_raise_and_keep_the_model(name, change):
    first, second = CLASS_CHANGES[change]
    model = clone(CLASSIFIERS[name]).set_params(warm_start=True, random_state=0).fit(X, first)
    _add_rounds(model)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="warm_start expects the classes of the earlier fit"):
        model.fit(X, second)
    assert model.classes_.tolist() == np.unique(first).tolist()
    np.testing.assert_array_equal(model.predict_proba(X), before)
    model.set_params(warm_start=False).fit(X, second)
    assert model.predict_proba(X).shape == (200, len(np.unique(second)))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_same_classes_continue_the_fit(name):
    model = clone(CLASSIFIERS[name]).set_params(warm_start=True, random_state=0).fit(X, THREE)
    _add_rounds(model)
    assert model.fit(X, THREE).predict_proba(X).shape == (200, 3)


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_another_number_of_outputs_raises(kind, n_outputs):
    targets = {1: X[:, 0], 2: X[:, :2]}
    model = kind(n_estimators=3, warm_start=True).fit(X, targets[n_outputs])
    model.set_params(n_estimators=6)
    with pytest.raises(ValueError, match=f"as many outputs as in the earlier fit, {n_outputs}"):
        model.fit(X, targets[3 - n_outputs])
    assert np.shape(model.predict(X)) == targets[n_outputs].shape


def test_other_classes_of_one_of_several_outputs_raise():
    model = RandomForestClassifier(n_estimators=3, warm_start=True, random_state=0)
    model.fit(X, np.column_stack([TWO, THREE])).set_params(n_estimators=6)
    with pytest.raises(ValueError, match=r"earlier fit, \[0, 1, 2\]; y has \[0, 1\]"):
        model.fit(X, np.column_stack([TWO, TWO]))


@pytest.mark.parametrize("change", CLASS_CHANGES)
def test_linear_models_do_not_mix_classes_of_two_fits(change):
    # Coefficients only initialise the optimisation, so other classes start a new fit.
    first, second = CLASS_CHANGES[change]
    if len(np.unique(second)) == 1:
        return
    model = LogisticRegression(warm_start=True).fit(X, first).fit(X, second)
    expected = LogisticRegression().fit(X, second)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-4)
    perceptron = Perceptron(warm_start=True, random_state=0).fit(X, first)
    if len(np.unique(first)) != len(np.unique(second)):
        with pytest.raises(ValueError, match="does not match dataset"):
            perceptron.fit(X, second)
    else:
        assert perceptron.fit(X, second).score(X, second) > 0.9
