"""Importances and partial dependence for kinds of tables, against scikit-learn."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_iris, make_moons
from sklearn.ensemble import RandomForestClassifier as SklearnForest
from sklearn.impute import SimpleImputer
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from spinney import plot
from spinney.data.sklearn_versions import SKLEARN_VERSION
from spinney.ensemble import GradientBoostingRegressor, RandomForestClassifier
from spinney.inspection import partial_dependence as our_dependence
from spinney.inspection import permutation_importance as our_importance
from spinney.inspection.importances import own_importances
from spinney.inspection.table_view import TableView
from spinney.plot.calculate_scores import calculate_confusion
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

mpl.use("agg")

HAS_CUSTOM_VALUES = pytest.mark.skipif(
    SKLEARN_VERSION < (1, 7), reason="partial_dependence has custom_values since scikit-learn 1.7"
)


@pytest.fixture
def ax():
    return Figure().subplots()


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# ------------------------------------------------------------------ importances


def test_permutation_importances_equal_those_of_scikit_learn(ax):
    iris = load_iris()
    forest = RandomForestClassifier(20, random_state=0).fit(iris.data, iris.target)
    plot.importances(forest, iris.data, iris.target, n_repeats=3, random_state=7, ax=ax)
    theirs = permutation_importance(forest, iris.data, iris.target, n_repeats=3, random_state=7)
    order = np.argsort(-theirs.importances_mean, kind="stable")
    assert np.allclose([bar.get_width() for bar in ax.patches], theirs.importances_mean[order])
    (bars,) = [drawn for drawn in ax.containers if hasattr(drawn, "errorbar")]
    segments = bars.errorbar[2][0].get_segments()
    half_lengths = [(segment[1, 0] - segment[0, 0]) / 2 for segment in segments]
    importance = our_importance(forest, iris.data, iris.target, n_repeats=3, random_state=7)
    assert np.allclose(importance.spread, theirs.importances_std)
    assert np.allclose(half_lengths, importance.error[order])
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"column {j}" for j in order]


def test_importances_from_a_sample_of_rows():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    importance = our_importance(tree, X, y, n_repeats=2, max_rows=40)
    # Scores of two repeats with 40 rows are multiples of 1 / 80.
    assert np.allclose(importance.mean * 80, np.round(importance.mean * 80))
    repeated = our_importance(tree, X, y, n_repeats=2, max_rows=40)
    assert np.array_equal(importance.mean, repeated.mean)
    of_all_rows = our_importance(tree, X, y, n_repeats=2, max_rows=None)
    assert not np.array_equal(importance.mean, of_all_rows.mean)


@pytest.mark.parametrize("forest", [RandomForestClassifier, SklearnForest])
def test_importances_of_forests_with_error_bars(ax, forest):
    iris = load_iris(as_frame=True)
    model = forest(20, random_state=0).fit(iris.data, iris.target)
    plot.importances(model, ax=ax)
    assert np.allclose(
        [bar.get_width() for bar in ax.patches], np.sort(model.feature_importances_)[::-1]
    )
    assert ax.get_yticklabels()[0].get_text() in iris.feature_names
    importance = own_importances(model)
    each = [tree.feature_importances_ for tree in model.estimators_]
    assert np.allclose(importance.spread, np.std(each, axis=0))


def test_importances_without_spread_have_no_error_bars():
    iris = load_iris()
    tree = DecisionTreeClassifier().fit(iris.data, iris.target)
    assert np.isnan(own_importances(tree).spread).all()
    boost = GradientBoostingRegressor(n_estimators=5).fit(iris.data, iris.target)
    assert np.isnan(own_importances(boost).spread).all()


# ------------------------------------------------------------------ dependence


@HAS_CUSTOM_VALUES
def test_partial_dependence_equals_that_of_scikit_learn(ax):
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    plot.partial_dependence(model, X, 2, n_values=7, individual=5, ax=ax)
    *rows, mean = [line for line in ax.lines if len(line.get_xdata()) == 7]
    grid = np.linspace(*np.quantile(X[:, 2], [0.05, 0.95]), 7)
    assert np.allclose(mean.get_xdata(), grid)
    theirs = partial_dependence(model, X, [2], custom_values={2: grid}, kind="both", method="brute")
    assert np.allclose(mean.get_ydata(), theirs["average"][0])
    assert len(rows) == 5
    assert np.allclose(rows[-1].get_ydata(), theirs["individual"][0][-1])


@HAS_CUSTOM_VALUES
def test_partial_dependence_on_two_columns(ax):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    plot.partial_dependence(model, X, (2, 3), target=1, n_values=5, ax=ax)
    grids = {j: np.linspace(*np.quantile(X[:, j], [0.05, 0.95]), 5) for j in (2, 3)}
    theirs = partial_dependence(model, X, [2, 3], custom_values=grids, method="brute")
    mesh = ax.collections[0].get_array()
    assert np.allclose(mesh, theirs["average"][1].T)


def test_partial_dependence_of_two_and_more_classes():
    left, right = Figure().subplots(1, 2)
    X, y = make_moons(300, noise=0.3, random_state=0)
    tree = DecisionTreeClassifier(max_depth=3).fit(X, np.where(y, "up", "down"))
    plot.partial_dependence(tree, X, 0, ax=left)
    assert left.get_ylabel() == "probability of up"
    X, y = load_iris(return_X_y=True)
    plot.partial_dependence(RandomForestClassifier(5).fit(X, y), X, 3, n_values=5, ax=right)
    assert texts(right) == ["0", "1", "2"]
    curves = [line.get_ydata() for line in right.lines[:3]]
    assert np.allclose(np.sum(curves, axis=0), 1)


def frame_of_kinds(kind, n=200):
    random = np.random.default_rng(0)
    columns = {
        "size": random.normal(size=n),
        "colour": random.choice(["red", "green", "blue"], n).astype(object),
        "count": random.integers(0, 5, n),
    }
    columns["size"][::9] = np.nan
    columns["colour"][::7] = None
    effect = np.array(
        [{"red": 3.0, "green": 1.0, "blue": 0.0, None: 7.0}[c] for c in columns["colour"]]
    )
    y = effect + np.nan_to_num(columns["size"], nan=-4.0) + columns["count"]
    pandas = pd.DataFrame(columns)
    frames = {
        "pandas": lambda: pandas,
        "category": lambda: pandas.assign(colour=pandas["colour"].astype("category")),
        "polars": lambda: pl.DataFrame({k: list(v) for k, v in columns.items()}),
        "arrow": lambda: pa.table({k: list(v) for k, v in columns.items()}),
        "batch": lambda: pa.RecordBatch.from_pydict({k: list(v) for k, v in columns.items()}),
        "objects": lambda: pandas.to_numpy(dtype=object),
    }
    return frames[kind](), y


FRAMES = ["pandas", "category", "polars", "arrow", "batch", "objects"]


@pytest.mark.parametrize("kind", FRAMES)
def test_plots_of_categories_and_missing_values(kind):
    X, y = frame_of_kinds(kind)
    options = {"categorical_features": [1]} if kind == "objects" else {}
    tree = DecisionTreeRegressor(**options).fit(X, y)
    left, right, surface, boundary = Figure().subplots(1, 4)
    plot.partial_dependence(tree, X, 1, ax=left)
    labels = [label.get_text() for label in left.get_xticklabels()]
    assert labels == ["blue", "green", "red", "missing"]
    # The target is a sum and the tree overfits: bars differ by the effects of the colours.
    heights = np.array([bar.get_height() for bar in left.patches])
    assert np.allclose(heights - heights[0], [0, 1, 3, 7], atol=0.7)
    plot.partial_dependence(tree, X, 0, ax=right)
    assert right.get_xticklabels()[-1].get_text() == "missing"
    missing_value = right.lines[1].get_ydata()
    assert len(missing_value) == 1
    dependence = our_dependence(tree, X, 0)
    assert missing_value[0] == dependence.average[0, -1] < dependence.average[0, :-1].min()
    plot.partial_dependence(tree, X, (0, 1), ax=surface, n_values=6)
    plot.decision_boundary(tree, X, y, features=[0, 1], n_steps=10, ax=boundary)
    assert [label.get_text() for label in boundary.get_yticklabels()] == labels[:3]
    importance_axes = plot.importances(tree, X, y, n_repeats=2, ax=Figure().subplots())
    assert len(importance_axes.patches) == 3
    left.get_figure().canvas.draw()


def test_kinds_of_frames_agree():
    importances = []
    for kind in FRAMES:
        X, y = frame_of_kinds(kind)
        options = {"categorical_features": [1]} if kind == "objects" else {}
        tree = DecisionTreeRegressor(max_depth=4, **options).fit(X, y)
        importances.append(our_importance(tree, X, y, n_repeats=2).mean)
    assert all(np.array_equal(importances[0], other) for other in importances)


@pytest.mark.parametrize(
    "as_column",
    [
        pd.Series,
        lambda y: pd.Series(y, dtype="category"),
        lambda y: pd.DataFrame({"y": y}),
        pl.Series,
        lambda y: pa.chunked_array([y]),
        lambda y: y[:, None],
        list,
    ],
)
def test_kinds_of_targets_agree(as_column):
    X, y = load_iris(return_X_y=True)
    labels = np.array(["a", "b", "c"], dtype=object)[y]
    tree = DecisionTreeClassifier(max_depth=2).fit(X, labels)
    target = as_column(labels)
    assert calculate_confusion(tree, X, target).counts.trace() == round(150 * tree.score(X, labels))
    expected = our_importance(tree, X, labels, n_repeats=2).mean
    assert np.array_equal(our_importance(tree, X, target, n_repeats=2).mean, expected)
    axes = Figure().subplots(1, 3)
    plot.roc(tree, X, target, ax=axes[0])
    plot.decision_boundary(tree, X, target, n_steps=5, ax=axes[1])
    plot.learning_curve(tree, X, target, sizes=[60], cv=2, ax=axes[2])
    assert axes[2].lines[0].get_ydata()[0] > 0.8


def test_pipeline_with_column_names(ax):
    frame, y = frame_of_kinds("pandas")
    transformers = [
        ("numbers", SimpleImputer(), ["size", "count"]),
        ("colours", OneHotEncoder(), ["colour"]),
    ]
    model = make_pipeline(ColumnTransformer(transformers), Ridge()).fit(frame, y)
    plot.partial_dependence(model, frame, "count", ax=ax)
    slopes = np.diff(ax.lines[0].get_ydata())  # linear: each step is the coefficient
    assert np.allclose(slopes, model[-1].coef_[1])
    importance = our_importance(model, frame, y, n_repeats=2)
    theirs = permutation_importance(model, frame, y, n_repeats=2, random_state=0)
    assert np.allclose(importance.mean, theirs.importances_mean)


def test_numeric_categories_have_bars(ax):
    X = np.c_[np.repeat([10, 20, 30], 5), np.arange(15)]
    tree = DecisionTreeRegressor(categorical_features=[0]).fit(X, np.repeat([5.0, 1.0, 5.0], 5))
    plot.partial_dependence(tree, X, 0, ax=ax)
    assert [bar.get_height() for bar in ax.patches] == [5.0, 1.0, 5.0]


def test_table_view_replaces_columns():
    frame = pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "y"]})
    changed = TableView(frame).make(
        np.array([2, 2]), {0: np.array([0.5, 1.5]), 1: np.array([1, 0])}
    )
    assert changed.to_dict(as_series=False) == {"a": [0.5, 1.5], "b": [None, "x"]}
    matrix = np.array([[1, 2], [3, 4]])
    changed = TableView(matrix).make(np.array([1, 0]), {0: np.array([0.5, 0.25])})
    assert changed.tolist() == [[0.5, 4.0], [0.25, 2.0]]
    assert matrix.tolist() == [[1, 2], [3, 4]]
