"""Parameters, clones, pipelines, searches, refits and models that are not fitted."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.contract import (
    ANY_CLASSES,
    METHODS,
    all_entries,
    assert_same,
    fit,
    make_queries,
    make_table,
    outputs,
    quiet,
)
from support.registry import Entry


@all_entries()
def test_parameters_are_kept_as_they_are(entry: Entry) -> None:
    model = entry.create()
    parameters = model.get_params(deep=False)
    other = entry.estimator_class(**parameters)
    for name, value in other.get_params(deep=False).items():
        assert value is parameters[name], name
    changed = entry.estimator_class(**entry.arguments).set_params(**parameters)
    assert repr(changed) == repr(model)
    X, y = make_table(entry)
    fit(model, X, y)
    for name, value in model.get_params(deep=False).items():
        assert value is parameters[name], name


@all_entries()
def test_unknown_parameters_raise(entry: Entry) -> None:
    with pytest.raises(ValueError, match="Invalid parameter 'no_such_parameter'"):
        entry.create().set_params(no_such_parameter=1)
    with pytest.raises(TypeError, match="no_such_parameter"):
        entry.estimator_class(**entry.arguments, no_such_parameter=1)


@all_entries()
def test_clones(entry: Entry) -> None:
    X, y = make_table(entry)
    model = fit(entry.create(), X, y)
    copy = clone(model)
    assert repr(copy) == repr(entry.create())
    assert not [name for name in vars(copy) if name.endswith("_")]
    assert_same(outputs(fit(copy, X, y), make_queries()), outputs(model, make_queries()))


@all_entries()
def test_unfitted_models_do_not_predict(entry: Entry) -> None:
    model = entry.create()
    names = [name for name in METHODS if hasattr(entry.estimator_class, name)]
    names += [name for name in ("query",) if hasattr(model, name)]
    for name in names:
        with pytest.raises((NotFittedError, AttributeError)):
            getattr(model, name)(make_queries())


@all_entries()
def test_second_fit_replaces_the_first(entry: Entry) -> None:
    X, y = make_table(entry)
    Z, t = make_table(entry, 40, seed=1)
    fresh = fit(entry.create(), Z[:, :2], t)
    again = fit(fit(entry.create(), X, y), Z[:, :2], t)
    assert again.n_features_in_ == 2
    queries = make_queries()[:, :2]
    assert_same(outputs(again, queries), outputs(fresh, queries))


@all_entries()
def test_fitted_attributes(entry: Entry) -> None:
    X, y = make_table(entry)
    model = entry.create()
    assert fit(model, X, y) is model
    assert model.n_features_in_ == 3
    if entry.target in ("classes", "two classes"):
        assert model.classes_.tolist() == np.unique(y).tolist()


@all_entries()
def test_pipelines(entry: Entry) -> None:
    X, y = make_table(entry)
    scaler = StandardScaler().fit(X)
    pipeline = fit(make_pipeline(StandardScaler(), entry.create()), X, y)
    model = fit(entry.create(), scaler.transform(X), y)
    expected = outputs(model, scaler.transform(make_queries()))
    with quiet():
        for name in METHODS:
            if name in expected and callable(getattr(pipeline, name, None)):
                found = getattr(pipeline, name)(make_queries())
                found = found.toarray() if hasattr(found, "toarray") else found
                np.testing.assert_array_equal(found, expected[name])


@all_entries((*ANY_CLASSES, "numbers"))
def test_searches(entry: Entry) -> None:
    X, y = make_table(entry)
    model = entry.create()
    name, value = next(iter(model.get_params(deep=False).items()))
    with quiet():
        search = GridSearchCV(model, {name: [value]}, cv=2, error_score="raise").fit(X, y)
    assert np.isfinite(search.best_score_)
    assert_same(outputs(search.best_estimator_, X), outputs(fit(entry.create(), X, y), X))
