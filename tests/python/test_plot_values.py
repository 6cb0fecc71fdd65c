"""Plots show the right numbers: read back from the Axes, against scikit-learn or by hand."""

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_diabetes, load_iris, make_blobs, make_moons
from sklearn.ensemble import RandomForestClassifier as TheirForest
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    auc,
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.model_selection import learning_curve as their_learning_curve
from sklearn.model_selection import validation_curve as their_validation_curve
from sklearn.svm import LinearSVC

import spinney
from spinney import plot
from spinney.ensemble import AdaBoostClassifier, GradientBoostingRegressor, RandomForestClassifier
from spinney.plot._calculate_dependence import calculate_dependence
from spinney.plot._calculate_importances import calculate_importances
from spinney.plot._calculate_scores import (
    calculate_confusion,
    calculate_precision_recall,
    calculate_roc,
    read_told,
)
from spinney.plot._table_view import TableView
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

mpl.use("agg")


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.3, random_state=0)


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# ------------------------------------------------------------------ curves


def test_learning_curve(ax, moons):
    X, y = moons
    tree = DecisionTreeClassifier(random_state=0)
    plot.learning_curve(tree, X, y, sizes=[50, 100, 240], ax=ax)
    sizes, train, test = their_learning_curve(
        tree, X, y, train_sizes=[50, 100, 240], shuffle=True, random_state=0,
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
    )  # fmt: skip
    left_out, of_fit = ax.lines
    assert np.array_equal(left_out.get_xdata(), sizes)
    assert np.allclose(left_out.get_ydata(), test.mean(axis=1))
    assert np.allclose(of_fit.get_ydata(), train.mean(axis=1))
    assert texts(ax) == ["rows left out", "rows of fit"]
    # The band is a standard error up and down.
    edge = ax.collections[0].get_paths()[0].vertices
    error = test.std(axis=1, ddof=1) / math.sqrt(5)
    assert np.isclose(edge[:, 1].max(), (test.mean(axis=1) + error).max())
    assert np.isclose(edge[:, 1].min(), (test.mean(axis=1) - error).min())


def test_learning_curve_of_several(ax):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:441], y[:441]  # folds of the same size
    models = {"stump": DecisionTreeRegressor(max_depth=1), "tree": DecisionTreeRegressor()}
    plot.learning_curve(models, X, y, sizes=[0.5, 1.0], cv=KFold(3), ax=ax)
    assert texts(ax) == ["stump", "tree"]
    assert len(ax.lines) == 4
    # All rows of a fold, in whatever order, make the same stump.
    whole = cross_val_score(models["stump"], X, y, cv=KFold(3)).mean()
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(whole)
    assert ax.get_ylabel() == "R²"


def test_learning_curve_starts_after_failed_fits(ax):
    # One class only in the first rows: scikit-learn's model refuses, the curve goes on.
    X, y = make_blobs(60, centers=2, random_state=0)
    y[:] = 0
    y[:6] = 1
    with pytest.warns(Warning, match="failed"):
        plot.learning_curve(LogisticRegression(), X, y, sizes=[2, 40], cv=3, ax=ax)
    assert np.isfinite(ax.lines[0].get_ydata()[-1])


def test_sorted_rows_are_shuffled(ax):
    X, y = load_iris(return_X_y=True)  # sorted by class
    plot.learning_curve(DecisionTreeClassifier(), X, y, sizes=[30], cv=3, ax=ax)
    assert ax.lines[0].get_ydata()[0] > 0.8


def test_validation_curve(ax, moons):
    X, y = moons
    tree, depths = DecisionTreeClassifier(random_state=0), [9, 1, 3]
    plot.validation_curve(tree, X, y, "max_depth", depths, ax=ax)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    train, test = their_validation_curve(
        tree, X, y, param_name="max_depth", param_range=[1, 3, 9], cv=folds
    )
    assert list(ax.lines[0].get_xdata()) == [1, 3, 9]
    assert np.allclose(ax.lines[0].get_ydata(), test.mean(axis=1))
    assert np.allclose(ax.lines[1].get_ydata(), train.mean(axis=1))
    assert ax.get_xlabel() == "max_depth"
    assert ax.get_xscale() == "linear"


def test_validation_curve_scale_and_words(moons):
    X, y = moons
    axes = Figure().subplots(1, 3)
    tree = DecisionTreeClassifier(random_state=0)
    plot.validation_curve(tree, X, y, "min_samples_leaf", [1, 100], cv=2, ax=axes[0])
    assert axes[0].get_xscale() == "log"
    plot.validation_curve(tree, X, y, "criterion", ["gini", "entropy"], cv=2, ax=axes[1])
    assert [label.get_text() for label in axes[1].get_xticklabels()] == ["gini", "entropy"]
    plot.validation_curve(tree, X, y, "max_depth", [None, 3], cv=2, ax=axes[2])
    assert [label.get_text() for label in axes[2].get_xticklabels()] == ["None", "3"]


# ------------------------------------------------------------------ classes


def test_roc_and_precision_recall(moons):
    X, y = moons
    forest = RandomForestClassifier(20, random_state=0).fit(X[:150], y[:150])
    chance = forest.predict_proba(X[150:])[:, 1]
    left, right = Figure().subplots(1, 2)
    plot.roc(forest, X[150:], y[150:], ax=left)
    plot.precision_recall({"forest": chance}, y=y[150:], ax=right)
    across, up, _ = roc_curve(y[150:], chance)
    assert np.allclose(left.lines[0].get_xydata(), np.c_[across, up])
    assert texts(left) == [f"AUC {roc_auc_score(y[150:], chance):.3f}"]
    precision, recall, _ = precision_recall_curve(y[150:], chance)
    assert np.allclose(right.lines[0].get_xydata()[::-1], np.c_[recall, precision])
    assert texts(right) == [f"forest  AP {average_precision_score(y[150:], chance):.3f}"]


def test_roc_of_the_other_class(ax):
    plot.roc([0.1, 0.6, 0.4, 0.8], y=["no", "no", "yes", "yes"], positive="no", ax=ax)
    assert texts(ax) == ["AUC 0.750"]


def test_curve_of_a_decision_function(ax, moons):
    X, y = moons
    model = LinearSVC().fit(X, y)
    plot.roc(model, X, y, ax=ax)
    assert texts(ax) == [f"AUC {roc_auc_score(y, model.decision_function(X)):.3f}"]


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_means_of_curves_have_the_mean_area(seed):
    random = np.random.default_rng(seed)
    y = np.r_[0, 1, 2, random.integers(0, 3, 17)]
    scores = random.integers(0, 4, (20, 3)) / 4  # with ties
    (told,), y = read_told(scores, None, y)
    roc = calculate_roc(told, y)
    assert roc.area == pytest.approx(auc(roc.across, roc.up))
    assert roc.area == pytest.approx(
        np.mean([roc_auc_score(y == c, scores[:, c]) for c in range(3)])
    )
    rates = calculate_precision_recall(told, y)
    steps = float(np.sum(np.diff(rates.across) * rates.up[1:]))
    assert rates.area == pytest.approx(steps)


def test_calibration(ax, moons):
    X, y = moons
    # 17 trees: no share of them lies on the edge of a bin.
    forest = RandomForestClassifier(17, random_state=0).fit(X[:150], y[:150])
    chance = forest.predict_proba(X[150:])[:, 1]
    plot.calibration(forest, X[150:], y[150:], n_bins=5, ax=ax)
    observed, predicted = calibration_curve(y[150:], chance, n_bins=5)
    assert np.allclose(ax.lines[0].get_xydata(), np.c_[predicted, observed])
    assert texts(ax) == [f"Brier {brier_score_loss(y[150:], chance):.3f}"]
    # Grey bars: rows of each bin against the fullest.
    counts = np.histogram(chance, np.linspace(0, 1, 6))[0]
    heights = np.array([bar.get_height() for bar in ax.patches])
    assert np.allclose(heights / heights.max(), counts / counts.max())


def test_calibration_intervals(ax):
    # 7 of 10 in one bin: Wilson's interval by its quadratic equation.
    plot.calibration(np.full(10, 0.6), y=[1] * 7 + [0] * 3, n_bins=1, ax=ax)
    (low, high) = ax.collections[0].get_segments()[0][:, 1]
    for end in (low, high):
        assert abs(0.7 - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / 10))


def test_calibration_of_several_classes(ax):
    chance = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.6, 0.2, 0.2]])
    plot.calibration(chance, y=[0, 1, 2, 1], n_bins=1, ax=ax)
    assert np.allclose(ax.lines[0].get_xydata(), [[0.6, 0.75]])
    assert "predicted class" in ax.get_xlabel()


def test_confusion(ax):
    y = np.array(["a", "b", "b", "c", "c", "c"])
    told = np.array(["a", "b", "c", "c", "c", "a"])
    plot.confusion(told, y=y, ax=ax)
    counts = [int(text.get_text()) for text in ax.texts]
    assert np.array_equal(np.reshape(counts, (3, 3)), confusion_matrix(y, told))
    assert np.allclose(ax.images[0].get_array().sum(axis=1), 1)
    assert ax.get_ylabel() == "true"
    plot.confusion(told, y=y, normalize=True, ax=Figure().subplots())


def test_margins_of_boosting_and_of_others(ax, moons):
    X, y = moons
    models = {
        "boost": AdaBoostClassifier(n_estimators=5).fit(X, y),
        "tree": DecisionTreeClassifier(max_depth=2).fit(X, y),
        "line": LinearSVC().fit(X, y),
    }
    plot.margins(models, X, y, ax=ax)
    sign = 2 * y - 1
    chance = models["tree"].predict_proba(X)[:, 1]
    wanted = [
        models["boost"].margins(X, y),
        sign * (2 * chance - 1),
        sign * models["line"].decision_function(X),
    ]
    for line, margin in zip(ax.lines, wanted, strict=False):
        assert np.allclose(line.get_xdata()[1:], np.sort(margin))
        assert line.get_ydata()[-1] == 1.0
    assert texts(ax) == list(models)


# ------------------------------------------------------------------ regression


def test_residuals(ax):
    X, y = load_diabetes(return_X_y=True)
    model = DecisionTreeRegressor(max_depth=3).fit(X[:300], y[:300])
    plot.residuals(model, X[300:], y[300:], ax=ax)
    told = model.predict(X[300:])
    assert np.allclose(ax.collections[0].get_offsets(), np.c_[told, y[300:] - told])
    assert ax.texts[0].get_text() == f"R² {model.score(X[300:], y[300:]):.3f}"


def test_residual_groups(ax):
    predicted = np.repeat([1.0, 2.0], 4)
    y = predicted + np.array([1, -1, 1, -1, 4, 0, 4, 0])
    plot.residuals(predicted, y=y, ax=ax)
    (bars,) = ax.containers
    assert np.allclose(bars[0].get_xydata(), [[1.0, 0.0], [2.0, 2.0]])
    (segments,) = bars[2]
    error = np.std([4, 0, 4, 0], ddof=1) / 2
    assert np.allclose(segments.get_segments()[1][:, 1], [2 - error, 2 + error])


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
    assert np.allclose(half, theirs.importances_std[order])
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"column {j}" for j in order]


def test_importances_of_some_rows():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    told = calculate_importances(tree, X, y, n_repeats=2, max_rows=40)
    assert np.allclose(told.mean * 80, np.round(told.mean * 80))  # two repeats of forty rows
    again = calculate_importances(tree, X, y, n_repeats=2, max_rows=40)
    assert np.array_equal(told.mean, again.mean)
    whole = calculate_importances(tree, X, y, n_repeats=2, max_rows=None)
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
    told = calculate_importances(model)
    each = [tree.feature_importances_ for tree in model.estimators_]
    assert np.allclose(told.spread, np.std(each, axis=0))


def test_no_error_bars_without_a_spread():
    iris = load_iris()
    tree = DecisionTreeClassifier().fit(iris.data, iris.target)
    assert np.isnan(calculate_importances(tree).spread).all()
    boost = GradientBoostingRegressor(n_estimators=5).fit(iris.data, iris.target)
    assert np.isnan(calculate_importances(boost).spread).all()


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


def test_dependence_of_two_classes_and_more(moons):
    left, right = Figure().subplots(1, 2)
    X, y = moons
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
    told = calculate_dependence(tree, X, 0)
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
        told.append(calculate_importances(tree, X, y, n_repeats=2).mean)
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
    wanted = calculate_importances(tree, X, words, n_repeats=2).mean
    assert np.array_equal(calculate_importances(tree, X, told, n_repeats=2).mean, wanted)
    axes = Figure().subplots(1, 3)
    plot.roc(tree, X, told, ax=axes[0])
    plot.decision_boundary(tree, X, told, n_steps=5, ax=axes[1])
    plot.learning_curve(tree, X, told, sizes=[60], cv=2, ax=axes[2])
    assert axes[2].lines[0].get_ydata()[0] > 0.8


def test_a_pipeline_of_names(ax):
    frame, y = frame_of_kinds("pandas")
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    parts = [
        ("numbers", SimpleImputer(), ["size", "count"]),
        ("colours", OneHotEncoder(), ["colour"]),
    ]
    model = make_pipeline(ColumnTransformer(parts), Ridge()).fit(frame, y)
    plot.partial_dependence(model, frame, "count", ax=ax)
    slopes = np.diff(ax.lines[0].get_ydata())  # a line: each step is the coefficient
    assert np.allclose(slopes, model[-1].coef_[1])
    told = calculate_importances(model, frame, y, n_repeats=2)
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


# ------------------------------------------------------------------ boundaries


def test_boundary_has_the_predictions(ax, moons):
    X, y = moons
    tree = DecisionTreeClassifier(max_depth=3).fit(X, y)
    plot.decision_boundary(tree, X, y, n_steps=20, ax=ax)
    mesh = ax.collections[0]
    low, high = X.min(axis=0), X.max(axis=0)
    sides = np.linspace(low - 0.05 * (high - low), high + 0.05 * (high - low), 20).T
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    told = tree.predict(grid)
    colours = mesh.get_array().reshape(-1, 3)
    # Blue is the first class, red the second.
    assert np.array_equal(colours[:, 0] > colours[:, 2], told == 1)
    assert any(np.array_equal(drawn.get_offsets(), X) for drawn in ax.collections[1:])
    assert texts(ax) == ["0", "1"]


def test_boundary_of_one_column(moons):
    left, right = Figure().subplots(1, 2)
    X, y = moons
    tree = DecisionTreeClassifier(max_depth=3).fit(X[:, :1], y)
    plot.decision_boundary(tree, X[:, :1], y, ax=left)
    line = left.lines[1]
    assert np.allclose(line.get_ydata(), tree.predict_proba(line.get_xdata()[:, None])[:, 1])
    numbers = DecisionTreeRegressor(max_depth=3).fit(X[:, :1], X[:, 1])
    plot.decision_boundary(numbers, X[:, :1], X[:, 1], ax=right)
    line = right.lines[0]
    assert np.allclose(line.get_ydata(), numbers.predict(line.get_xdata()[:, None]))


def test_boundary_holds_other_columns(ax):
    X = np.array([[0.0, 0.0, 5.0], [1.0, 1.0, 5.0], [0.0, 1.0, 9.0], [1.0, 0.0, 5.0]])
    model = DecisionTreeRegressor().fit(X, X[:, 2])
    plot.decision_boundary(model, X, features=[0, 1], n_steps=5, ax=ax)
    assert np.all(ax.collections[0].get_array() == 5.0)  # the median
    assert "1 other column" in ax.texts[0].get_text()


# ------------------------------------------------------------------ trees and comparisons


def test_tree(ax):
    iris = load_iris(as_frame=True)
    tree = DecisionTreeClassifier(max_depth=3).fit(iris.data, iris.target_names[iris.target])
    assert plot.tree(tree, max_depth=1, ax=ax) is ax
    told = [text.get_text() for text in ax.texts]
    assert told[0].startswith("petal")
    assert "class = setosa" in told[0]
    assert sum("(...)" in text for text in told) == 2
    assert "1 of 3 levels" in told[-1]
    numbers = DecisionTreeRegressor(max_depth=2).fit(iris.data, iris.target)
    plot.tree(numbers, ax=Figure().subplots())


def test_comparison(ax, moons):
    result = spinney.compare(*moons, models=["baseline", "decision_tree"], cv=3)
    plot.comparison(result, ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["decision_tree", "baseline"]
    means = [bars[0].get_xdata()[0] for bars in ax.containers]
    assert np.allclose(means, [100 * r.estimate.mean for r in result.results])
    folds = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 3]
    assert np.allclose(folds[0], 100 * np.array(result.results[0].estimate.folds))


def test_comparison_with_a_failure(ax, moons):
    result = spinney.compare(*moons, models=["baseline"], cv=3)
    failed = spinney.report.ModelResult("broken", "Broken", failure="ValueError: no")
    result.results.append(failed)
    plot.comparison(result, ax=ax)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["baseline", "broken (failed)"]
