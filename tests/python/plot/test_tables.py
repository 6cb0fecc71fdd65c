"""Importances and partial dependence, of tables of every kind: against scikit-learn."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_iris, make_moons
from sklearn.ensemble import RandomForestClassifier as TheirForest
from sklearn.impute import SimpleImputer
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from spinney import plot
from spinney.ensemble import GradientBoostingRegressor, RandomForestClassifier
from spinney.inspection import partial_dependence as our_dependence
from spinney.inspection import permutation_importance as our_importance
from spinney.inspection.importances import own_importances
from spinney.inspection.table_view import TableView
from spinney.plot.calculate_scores import calculate_confusion
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

mpl.use("agg")


@pytest.fixture
def ax():
    return Figure().subplots()


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# ------------------------------------------------------------------ importances


def test_importances_by_permutation_are_scikit_learns(ax):
    iris = load_iris()
    forest = RandomForestClassifier(20, random_state=0).fit(iris.data, iris.target)
    plot.importances(forest, iris.data, iris.target, n_repeats=3, random_state=7, ax=ax)
    theirs = permutation_importance(forest, iris.data, iris.target, n_repeats=3, random_state=7)
    order = np.argsort(-theirs.importances_mean, kind="stable")
    assert np.allclose([bar.get_width() for bar in ax.patches], theirs.importances_mean[order])
    (bars,) = [drawn for drawn in ax.containers if hasattr(drawn, "errorbar")]
    segments = bars.errorbar[2][0].get_segments()
    half = [(s[1, 0] - s[0, 0]) / 2 for s in segments]
    told = our_importance(forest, iris.data, iris.target, n_repeats=3, random_state=7)
    assert np.allclose(told.spread, theirs.importances_std)
    assert np.allclose(half, told.error[order])
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"column {j}" for j in order]


def test_importances_of_some_rows():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    told = our_importance(tree, X, y, n_repeats=2, max_rows=40)
    assert np.allclose(told.mean * 80, np.round(told.mean * 80))  # two repeats of forty rows
    again = our_importance(tree, X, y, n_repeats=2, max_rows=40)
    assert np.array_equal(told.mean, again.mean)
    whole = our_importance(tree, X, y, n_repeats=2, max_rows=None)
    assert not np.array_equal(told.mean, whole.mean)


@pytest.mark.parametrize("forest", [RandomForestClassifier, TheirForest])
def test_importances_of_forests(ax, forest):
    iris = load_iris(as_frame=True)
    model = forest(20, random_state=0).fit(iris.data, iris.target)
    plot.importances(model, ax=ax)
    assert np.allclose(
        [bar.get_width() for bar in ax.patches], np.sort(model.feature_importances_)[::-1]
    )
    assert ax.get_yticklabels()[0].get_text() in iris.feature_names
    told = own_importances(model)
    each = [tree.feature_importances_ for tree in model.estimators_]
    assert np.allclose(told.spread, np.std(each, axis=0))


def test_no_error_bars_without_a_spread():
    iris = load_iris()
    tree = DecisionTreeClassifier().fit(iris.data, iris.target)
    assert np.isnan(own_importances(tree).spread).all()
    boost = GradientBoostingRegressor(n_estimators=5).fit(iris.data, iris.target)
    assert np.isnan(own_importances(boost).spread).all()


# ------------------------------------------------------------------ dependence


def test_dependence_is_scikit_learns(ax):
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


def test_dependence_on_two(ax):
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    plot.partial_dependence(model, X, (2, 3), target=1, n_values=5, ax=ax)
    grids = {j: np.linspace(*np.quantile(X[:, j], [0.05, 0.95]), 5) for j in (2, 3)}
    theirs = partial_dependence(model, X, [2, 3], custom_values=grids, method="brute")
    mesh = ax.collections[0].get_array()
    assert np.allclose(mesh, theirs["average"][1].T)


def test_dependence_of_two_classes_and_more():
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
    worth = np.array(
        [{"red": 3.0, "green": 1.0, "blue": 0.0, None: 7.0}[c] for c in columns["colour"]]
    )
    y = worth + np.nan_to_num(columns["size"], nan=-4.0) + columns["count"]
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
def test_categories_and_missing_values(kind):
    X, y = frame_of_kinds(kind)
    options = {"categorical_features": [1]} if kind == "objects" else {}
    tree = DecisionTreeRegressor(**options).fit(X, y)
    left, right, plane, both = Figure().subplots(1, 4)
    plot.partial_dependence(tree, X, 1, ax=left)
    labels = [label.get_text() for label in left.get_xticklabels()]
    assert labels == ["blue", "green", "red", "missing"]
    # The truth is a sum, and the tree learned it by heart: bars differ by what the colours differ.
    heights = np.array([bar.get_height() for bar in left.patches])
    assert np.allclose(heights - heights[0], [0, 1, 3, 7], atol=0.7)
    plot.partial_dependence(tree, X, 0, ax=right)
    assert right.get_xticklabels()[-1].get_text() == "missing"
    gap = right.lines[1].get_ydata()
    assert len(gap) == 1
    told = our_dependence(tree, X, 0)
    assert gap[0] == told.average[0, -1] < told.average[0, :-1].min()
    plot.partial_dependence(tree, X, (0, 1), ax=plane, n_values=6)
    plot.decision_boundary(tree, X, y, features=[0, 1], n_steps=10, ax=both)
    assert [label.get_text() for label in both.get_yticklabels()] == labels[:3]
    shown = plot.importances(tree, X, y, n_repeats=2, ax=Figure().subplots())
    assert len(shown.patches) == 3
    left.get_figure().canvas.draw()


def test_frames_agree():
    told = []
    for kind in FRAMES:
        X, y = frame_of_kinds(kind)
        options = {"categorical_features": [1]} if kind == "objects" else {}
        tree = DecisionTreeRegressor(max_depth=4, **options).fit(X, y)
        told.append(our_importance(tree, X, y, n_repeats=2).mean)
    assert all(np.array_equal(told[0], other) for other in told)


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
def test_targets_of_every_kind(as_column):
    X, y = load_iris(return_X_y=True)
    words = np.array(["a", "b", "c"], dtype=object)[y]
    tree = DecisionTreeClassifier(max_depth=2).fit(X, words)
    told = as_column(words)
    assert calculate_confusion(tree, X, told).counts.trace() == round(150 * tree.score(X, words))
    wanted = our_importance(tree, X, words, n_repeats=2).mean
    assert np.array_equal(our_importance(tree, X, told, n_repeats=2).mean, wanted)
    axes = Figure().subplots(1, 3)
    plot.roc(tree, X, told, ax=axes[0])
    plot.decision_boundary(tree, X, told, n_steps=5, ax=axes[1])
    plot.learning_curve(tree, X, told, sizes=[60], cv=2, ax=axes[2])
    assert axes[2].lines[0].get_ydata()[0] > 0.8


def test_a_pipeline_of_names(ax):
    frame, y = frame_of_kinds("pandas")
    parts = [
        ("numbers", SimpleImputer(), ["size", "count"]),
        ("colours", OneHotEncoder(), ["colour"]),
    ]
    model = make_pipeline(ColumnTransformer(parts), Ridge()).fit(frame, y)
    plot.partial_dependence(model, frame, "count", ax=ax)
    slopes = np.diff(ax.lines[0].get_ydata())  # a line: each step is the coefficient
    assert np.allclose(slopes, model[-1].coef_[1])
    told = our_importance(model, frame, y, n_repeats=2)
    theirs = permutation_importance(model, frame, y, n_repeats=2, random_state=0)
    assert np.allclose(told.mean, theirs.importances_mean)


def test_numbers_that_name_things(ax):
    X = np.c_[np.repeat([10, 20, 30], 5), np.arange(15)]
    tree = DecisionTreeRegressor(categorical_features=[0]).fit(X, np.repeat([5.0, 1.0, 5.0], 5))
    plot.partial_dependence(tree, X, 0, ax=ax)
    assert [bar.get_height() for bar in ax.patches] == [5.0, 1.0, 5.0]


def test_views_make_what_they_are_told():
    frame = pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "y"]})
    made = TableView(frame).make(np.array([2, 2]), {0: np.array([0.5, 1.5]), 1: np.array([1, 0])})
    assert made.to_dict(as_series=False) == {"a": [0.5, 1.5], "b": [None, "x"]}
    whole = np.array([[1, 2], [3, 4]])
    made = TableView(whole).make(np.array([1, 0]), {0: np.array([0.5, 0.25])})
    assert made.tolist() == [[0.5, 4.0], [0.25, 2.0]]
    assert whole.tolist() == [[1, 2], [3, 4]]
