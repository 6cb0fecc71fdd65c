"""Missing values and categories, in training and at predict time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import tree_checker as checker
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor
from support.tree_tables import (
    CLASSIFIER_CRITERIA,
    GENERATORS,
    LIMITS,
    Table,
    bits,
    category_column,
    check,
    class_tables,
    examples,
    grow,
    regression_tables,
)

pd = pytest.importorskip("pandas")


@examples(30)
@given(st.one_of(class_tables(missing=False), regression_tables(missing=False)), LIMITS)
def test_missing_only_at_predict_time_goes_to_the_larger_child(table, limits):
    kind = DecisionTreeClassifier if table.y.dtype.kind == "i" else DecisionTreeRegressor
    estimator = grow(kind(), table, **limits)
    tree, node = estimator.tree_, 0
    while tree.children_left[node] >= 0:
        left, right = tree.children_left[node], tree.children_right[node]
        node = left if tree.n_node_samples[left] > tree.n_node_samples[right] else right
    assert estimator.apply(np.full((1, table.X.shape[1]), np.nan)) == [node]


@pytest.mark.parametrize("criterion", CLASSIFIER_CRITERIA)
def test_missing_goes_right_on_a_tie(criterion):
    """Both directions give the same children, exchanged."""
    X = np.array([[0.0], [1.0], [np.nan], [np.nan]])
    y = np.array([0, 1, 0, 1])
    table = Table(X, y, None, [])
    estimator = grow(DecisionTreeClassifier(criterion=criterion, max_depth=1), table)
    check(estimator, table)
    assert estimator.tree_.threshold[0] == 0.5
    assert not estimator.tree_.missing_go_to_left[0]


@pytest.mark.parametrize("missing_label", [0, 1])
def test_direction_of_missing_values_is_learned(missing_label):
    X = np.array([[0.0], [0.0], [1.0], [1.0], [np.nan], [np.nan]])
    y = np.array([0, 0, 1, 1, missing_label, missing_label])
    estimator = grow(DecisionTreeClassifier(), Table(X, y, None, []))
    np.testing.assert_array_equal(estimator.predict(X), y)
    assert estimator.get_depth() == 1


def test_missing_against_all_others_is_a_split():
    X = np.array([[0.0], [1.0], [2.0], [np.nan]])
    table = Table(X, np.array([0, 0, 0, 1]), None, [])
    estimator = grow(DecisionTreeClassifier(), table)
    assert estimator.tree_.threshold[0] == np.inf
    assert check(estimator, table) == 1
    assert estimator.predict([[np.nan], [1e300], [-1e300]]).tolist() == [1, 0, 0]


@examples(20)
@given(GENERATORS, st.integers(1, 12), st.booleans(), st.booleans())
def test_unseen_category_follows_the_missing_values(rng, n_codes, missing, is_classifier):
    n_rows = 30
    column = category_column(rng, n_codes, n_rows, missing=missing)
    X = np.column_stack([column, rng.integers(6, size=n_rows)])
    y = rng.integers(3, size=n_rows)
    kind = DecisionTreeClassifier if is_classifier else DecisionTreeRegressor
    estimator = grow(kind(), Table(X, y if is_classifier else y / 2, None, [0]))
    unseen, missing_rows = X.copy(), X.copy()
    unseen[:, 0], missing_rows[:, 0] = 1000.0, np.nan
    np.testing.assert_array_equal(estimator.apply(unseen), estimator.apply(missing_rows))


@pytest.fixture
def animals():
    """Return a data frame of unsorted category names and numbers, and a target."""
    rng = np.random.default_rng(0)
    names = np.array(["owl", "bat", "elk", "cod", "ant", "yak", "fox"])
    which = rng.integers(7, size=120)
    weight = rng.normal(size=120)
    y = np.array([1.5, -2.0, 0.0, 4.0, -1.0, 2.5, 3.0])[which] + (weight > 0) + rng.normal(size=120)
    frame = pd.DataFrame({"animal": pd.Categorical(names[which]), "weight": weight})
    frame.loc[rng.random(120) < 0.1, "animal"] = None
    return frame, y


def test_data_frames_keep_category_names(animals):
    frame, y = animals
    estimator = DecisionTreeRegressor(max_depth=4).fit(frame, y)
    assert list(estimator.categories_[0]) == sorted(frame["animal"].cat.categories)
    assert np.count_nonzero(estimator.tree_.category_start >= 0) > 1
    assert checker.check_tree(estimator, frame, y, exact=False) > 3


def test_categories_are_matched_by_name(animals):
    """Reordered, additional or removed categories do not change predictions."""
    frame, y = animals
    estimator = DecisionTreeRegressor(max_depth=4).fit(frame, y)
    expected = estimator.predict(frame)
    names = list(frame["animal"].cat.categories)
    for categories in names[::-1], ["aye-aye", *names, "zebu"]:
        other = frame.assign(animal=frame["animal"].cat.set_categories(categories))
        np.testing.assert_array_equal(estimator.predict(other), expected)
    subset = frame[frame["animal"].isin(names[:2])]
    subset = subset.assign(animal=subset["animal"].cat.remove_unused_categories())
    rows = np.flatnonzero(frame["animal"].isin(names[:2]))
    np.testing.assert_array_equal(estimator.predict(subset), expected[rows])


def test_unseen_category_name_follows_the_missing_values(animals):
    frame, y = animals
    estimator = DecisionTreeRegressor(max_depth=4).fit(frame, y)
    unseen = frame.assign(animal=pd.Categorical(["zebu"] * len(frame)))
    missing = frame.assign(animal=pd.Categorical([None] * len(frame), ["owl"]))
    np.testing.assert_array_equal(estimator.apply(unseen), estimator.apply(missing))


def test_all_forms_of_categorical_features_agree(animals):
    frame, y = animals
    codes = frame["animal"].cat.codes.to_numpy().astype(float)
    codes[codes < 0] = np.nan
    X = np.column_stack([codes, frame["weight"]])
    from_dtype = bits(DecisionTreeRegressor().fit(frame, y))
    for columns in [0], np.array([0]), [True, False], np.array([True, False]):
        assert bits(DecisionTreeRegressor(categorical_features=columns).fit(X, y)) == from_dtype
    for columns in ["animal"], [0], [True, False], "from_dtype":
        assert bits(DecisionTreeRegressor(categorical_features=columns).fit(frame, y)) == from_dtype
