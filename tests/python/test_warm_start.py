"""A warm start goes on with the outputs and classes of the earlier fit, or raises an error."""

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
OTHERS = {
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


@pytest.mark.parametrize("change", OTHERS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_other_classes_are_an_error_and_leave_the_model_as_it_was(name, change):
    first, second = OTHERS[change]
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
def test_the_same_classes_go_on(name):
    model = clone(CLASSIFIERS[name]).set_params(warm_start=True, random_state=0).fit(X, THREE)
    _add_rounds(model)
    assert model.fit(X, THREE).predict_proba(X).shape == (200, 3)


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("before", [1, 2])
def test_another_number_of_outputs_is_an_error(kind, before):
    targets = {1: X[:, 0], 2: X[:, :2]}
    model = kind(n_estimators=3, warm_start=True).fit(X, targets[before])
    model.set_params(n_estimators=6)
    with pytest.raises(ValueError, match=f"as many outputs as in the earlier fit, {before}"):
        model.fit(X, targets[3 - before])
    assert np.shape(model.predict(X)) == targets[before].shape


def test_another_number_of_classes_of_one_output_of_several_is_an_error():
    model = RandomForestClassifier(n_estimators=3, warm_start=True, random_state=0)
    model.fit(X, np.column_stack([TWO, THREE])).set_params(n_estimators=6)
    with pytest.raises(ValueError, match=r"earlier fit, \[0, 1, 2\]; y has \[0, 1\]"):
        model.fit(X, np.column_stack([TWO, TWO]))


@pytest.mark.parametrize("change", OTHERS)
def test_linear_models_never_mix_two_sets_of_classes(change):
    # Their coefficients only start an optimisation, so that other classes are a fit anew.
    first, second = OTHERS[change]
    if len(np.unique(second)) == 1:
        return
    model = LogisticRegression(warm_start=True).fit(X, first).fit(X, second)
    expected = LogisticRegression().fit(X, second)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-4)
    planes = Perceptron(warm_start=True, random_state=0).fit(X, first)
    if len(np.unique(first)) != len(np.unique(second)):
        with pytest.raises(ValueError, match="does not match dataset"):
            planes.fit(X, second)
    else:
        assert planes.fit(X, second).score(X, second) > 0.9
