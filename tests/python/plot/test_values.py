"""Values in plots: read from the Axes, against scikit-learn or by hand."""

import math

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_diabetes, load_iris, make_blobs, make_moons
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
from spinney.ensemble import AdaBoostClassifier, RandomForestClassifier
from spinney.plot.calculate_scores import (
    calculate_precision_recall,
    calculate_roc,
    read_scores,
)
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


def test_learning_curve_equals_that_of_scikit_learn(ax, moons):
    X, y = moons
    tree = DecisionTreeClassifier(random_state=0)
    plot.learning_curve(tree, X, y, sizes=[50, 100, 240], ax=ax)
    sizes, train, test = their_learning_curve(
        tree, X, y, train_sizes=[50, 100, 240], shuffle=True, random_state=0,
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
    )  # fmt: skip
    validation_line, train_line = ax.lines
    assert np.array_equal(validation_line.get_xdata(), sizes)
    assert np.allclose(validation_line.get_ydata(), test.mean(axis=1))
    assert np.allclose(train_line.get_ydata(), train.mean(axis=1))
    assert texts(ax) == ["held-out rows", "training rows"]
    # The band has a width of one standard error on both sides.
    band = ax.collections[0].get_paths()[0].vertices
    error = test.std(axis=1, ddof=1) / math.sqrt(5)
    assert np.isclose(band[:, 1].max(), (test.mean(axis=1) + error).max())
    assert np.isclose(band[:, 1].min(), (test.mean(axis=1) - error).min())


def test_learning_curve_of_several_models(ax):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:441], y[:441]  # folds of the same size
    models = {"stump": DecisionTreeRegressor(max_depth=1), "tree": DecisionTreeRegressor()}
    plot.learning_curve(models, X, y, sizes=[0.5, 1.0], cv=KFold(3), ax=ax)
    assert texts(ax) == ["stump", "tree"]
    assert len(ax.lines) == 4
    # All rows of a fold, in any order, give the same stump.
    of_all_rows = cross_val_score(models["stump"], X, y, cv=KFold(3)).mean()
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(of_all_rows)
    assert ax.get_ylabel() == "R²"


def test_learning_curve_skips_failed_fits(ax):
    # The first rows have one class only: the model of scikit-learn fails; the curve continues.
    X, y = make_blobs(60, centers=2, random_state=0)
    y[:] = 0
    y[:6] = 1
    with pytest.warns(Warning, match="failed"):
        plot.learning_curve(LogisticRegression(), X, y, sizes=[2, 40], cv=3, ax=ax)
    assert np.isfinite(ax.lines[0].get_ydata()[-1])


def test_learning_curve_shuffles_sorted_rows(ax):
    X, y = load_iris(return_X_y=True)  # sorted by class
    plot.learning_curve(DecisionTreeClassifier(), X, y, sizes=[30], cv=3, ax=ax)
    assert ax.lines[0].get_ydata()[0] > 0.8


def test_validation_curve_equals_that_of_scikit_learn(ax, moons):
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


def test_validation_curve_of_logarithmic_and_text_values(moons):
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


def test_roc_and_precision_recall_equal_scikit_learn(moons):
    X, y = moons
    forest = RandomForestClassifier(20, random_state=0).fit(X[:150], y[:150])
    scores = forest.predict_proba(X[150:])[:, 1]
    left, right = Figure().subplots(1, 2)
    plot.roc(forest, X[150:], y[150:], ax=left)
    plot.precision_recall({"forest": scores}, y=y[150:], ax=right)
    false_positive_rate, true_positive_rate, _ = roc_curve(y[150:], scores)
    assert np.allclose(left.lines[0].get_xydata(), np.c_[false_positive_rate, true_positive_rate])
    assert texts(left) == [f"AUC {roc_auc_score(y[150:], scores):.3f}"]
    precision, recall, _ = precision_recall_curve(y[150:], scores)
    assert np.allclose(right.lines[0].get_xydata()[::-1], np.c_[recall, precision])
    assert texts(right) == [f"forest  AP {average_precision_score(y[150:], scores):.3f}"]


def test_roc_of_another_positive_class(ax):
    plot.roc([0.1, 0.6, 0.4, 0.8], y=["no", "no", "yes", "yes"], positive="no", ax=ax)
    assert texts(ax) == ["AUC 0.750"]


def test_roc_of_a_decision_function(ax, moons):
    X, y = moons
    model = LinearSVC().fit(X, y)
    plot.roc(model, X, y, ax=ax)
    assert texts(ax) == [f"AUC {roc_auc_score(y, model.decision_function(X)):.3f}"]


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_average_curves_have_the_average_area(seed):
    random = np.random.default_rng(seed)
    y = np.r_[0, 1, 2, random.integers(0, 3, 17)]
    scores = random.integers(0, 4, (20, 3)) / 4  # with ties
    (one_vs_rest,), y = read_scores(scores, None, y)
    roc = calculate_roc(one_vs_rest, y)
    assert roc.area == pytest.approx(auc(roc.across, roc.up))
    assert roc.area == pytest.approx(
        np.mean([roc_auc_score(y == c, scores[:, c]) for c in range(3)])
    )
    precision_recall = calculate_precision_recall(one_vs_rest, y)
    steps = float(np.sum(np.diff(precision_recall.across) * precision_recall.up[1:]))
    assert precision_recall.area == pytest.approx(steps)


def test_calibration_equals_that_of_scikit_learn(ax, moons):
    X, y = moons
    # With 17 trees, no predicted probability is the edge of a bin.
    forest = RandomForestClassifier(17, random_state=0).fit(X[:150], y[:150])
    probabilities = forest.predict_proba(X[150:])[:, 1]
    plot.calibration(forest, X[150:], y[150:], n_bins=5, ax=ax)
    observed, predicted = calibration_curve(y[150:], probabilities, n_bins=5)
    assert np.allclose(ax.lines[0].get_xydata(), np.c_[predicted, observed])
    assert texts(ax) == [f"Brier {brier_score_loss(y[150:], probabilities):.3f}"]
    # Grey bars: rows per bin, relative to the largest bin.
    counts = np.histogram(probabilities, np.linspace(0, 1, 6))[0]
    heights = np.array([bar.get_height() for bar in ax.patches])
    assert np.allclose(heights / heights.max(), counts / counts.max())


def test_calibration_has_wilson_intervals(ax):
    # 7 of 10 in one bin: Wilson's interval, by its quadratic equation.
    plot.calibration(np.full(10, 0.6), y=[1] * 7 + [0] * 3, n_bins=1, ax=ax)
    (low, high) = ax.collections[0].get_segments()[0][:, 1]
    for end in (low, high):
        assert abs(0.7 - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / 10))


def test_calibration_of_several_classes(ax):
    probabilities = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.6, 0.2, 0.2]])
    plot.calibration(probabilities, y=[0, 1, 2, 1], n_bins=1, ax=ax)
    assert np.allclose(ax.lines[0].get_xydata(), [[0.6, 0.75]])
    assert "predicted class" in ax.get_xlabel()


def test_confusion_matrix_equals_that_of_scikit_learn(ax):
    y = np.array(["a", "b", "b", "c", "c", "c"])
    predicted = np.array(["a", "b", "c", "c", "c", "a"])
    plot.confusion(predicted, y=y, ax=ax)
    counts = [int(text.get_text()) for text in ax.texts]
    assert np.array_equal(np.reshape(counts, (3, 3)), confusion_matrix(y, predicted))
    assert np.allclose(ax.images[0].get_array().sum(axis=1), 1)
    assert ax.get_ylabel() == "true"
    plot.confusion(predicted, y=y, normalize=True, ax=Figure().subplots())


def test_margins_of_boosting_trees_and_lines(ax, moons):
    X, y = moons
    models = {
        "boost": AdaBoostClassifier(n_estimators=5).fit(X, y),
        "tree": DecisionTreeClassifier(max_depth=2).fit(X, y),
        "line": LinearSVC().fit(X, y),
    }
    plot.margins(models, X, y, ax=ax)
    sign = 2 * y - 1
    probabilities = models["tree"].predict_proba(X)[:, 1]
    expected = [
        models["boost"].margins(X, y),
        sign * (2 * probabilities - 1),
        sign * models["line"].decision_function(X),
    ]
    for line, expected_margins in zip(ax.lines, expected, strict=False):
        assert np.allclose(line.get_xdata()[1:], np.sort(expected_margins))
        assert line.get_ydata()[-1] == 1.0
    assert texts(ax) == list(models)


# ------------------------------------------------------------------ regression


def test_residuals_by_hand(ax):
    X, y = load_diabetes(return_X_y=True)
    model = DecisionTreeRegressor(max_depth=3).fit(X[:300], y[:300])
    plot.residuals(model, X[300:], y[300:], ax=ax)
    predicted = model.predict(X[300:])
    assert np.allclose(ax.collections[0].get_offsets(), np.c_[predicted, y[300:] - predicted])
    assert ax.texts[0].get_text() == f"R² {model.score(X[300:], y[300:]):.3f}"


def test_residuals_of_groups_have_error_bars(ax):
    predicted = np.repeat([1.0, 2.0], 4)
    y = predicted + np.array([1, -1, 1, -1, 4, 0, 4, 0])
    plot.residuals(predicted, y=y, ax=ax)
    (bars,) = ax.containers
    assert np.allclose(bars[0].get_xydata(), [[1.0, 0.0], [2.0, 2.0]])
    (segments,) = bars[2]
    error = np.std([4, 0, 4, 0], ddof=1) / 2
    assert np.allclose(segments.get_segments()[1][:, 1], [2 - error, 2 + error])


# ------------------------------------------------------------------ boundaries


def test_boundary_shows_the_predictions(ax, moons):
    X, y = moons
    tree = DecisionTreeClassifier(max_depth=3).fit(X, y)
    plot.decision_boundary(tree, X, y, n_steps=20, ax=ax)
    mesh = ax.collections[0]
    low, high = X.min(axis=0), X.max(axis=0)
    coordinates = np.linspace(low - 0.05 * (high - low), high + 0.05 * (high - low), 20).T
    grid = np.stack(np.meshgrid(*coordinates), axis=-1).reshape(-1, 2)
    predicted = tree.predict(grid)
    colours = mesh.get_array().reshape(-1, 3)
    # Blue is the first class, red the second.
    assert np.array_equal(colours[:, 0] > colours[:, 2], predicted == 1)
    assert any(np.array_equal(drawn.get_offsets(), X) for drawn in ax.collections[1:])
    assert texts(ax) == ["0", "1"]


def test_boundary_with_one_column(moons):
    left, right = Figure().subplots(1, 2)
    X, y = moons
    tree = DecisionTreeClassifier(max_depth=3).fit(X[:, :1], y)
    plot.decision_boundary(tree, X[:, :1], y, ax=left)
    line = left.lines[1]
    assert np.allclose(line.get_ydata(), tree.predict_proba(line.get_xdata()[:, None])[:, 1])
    regressor = DecisionTreeRegressor(max_depth=3).fit(X[:, :1], X[:, 1])
    plot.decision_boundary(regressor, X[:, :1], X[:, 1], ax=right)
    line = right.lines[0]
    assert np.allclose(line.get_ydata(), regressor.predict(line.get_xdata()[:, None]))


def test_boundary_fixes_other_columns(ax):
    X = np.array([[0.0, 0.0, 5.0], [1.0, 1.0, 5.0], [0.0, 1.0, 9.0], [1.0, 0.0, 5.0]])
    model = DecisionTreeRegressor().fit(X, X[:, 2])
    plot.decision_boundary(model, X, features=[0, 1], n_steps=5, ax=ax)
    assert np.all(ax.collections[0].get_array() == 5.0)  # the median
    assert "1 other column" in ax.texts[0].get_text()


# ------------------------------------------------------------------ trees and comparisons


def test_tree_with_a_maximal_depth(ax):
    iris = load_iris(as_frame=True)
    tree = DecisionTreeClassifier(max_depth=3).fit(iris.data, iris.target_names[iris.target])
    assert plot.tree(tree, max_depth=1, ax=ax) is ax
    labels = [text.get_text() for text in ax.texts]
    assert labels[0].startswith("petal")
    assert "class = setosa" in labels[0]
    assert sum("(...)" in text for text in labels) == 2
    assert "1 of 3 levels" in labels[-1]
    regressor = DecisionTreeRegressor(max_depth=2).fit(iris.data, iris.target)
    plot.tree(regressor, ax=Figure().subplots())


def test_comparison_shows_means_and_folds(ax, moons):
    result = spinney.compare(*moons, models=["baseline", "decision_tree"], cv=3)
    plot.comparison(result, ax=ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["decision_tree", "baseline"]
    means = [bars[0].get_xdata()[0] for bars in ax.containers]
    assert np.allclose(means, [100 * r.estimate.mean for r in result.results])
    folds = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 3]
    assert np.allclose(folds[0], 100 * np.array(result.results[0].estimate.folds))


def test_comparison_with_a_failed_model(ax, moons):
    result = spinney.compare(*moons, models=["baseline"], cv=3)
    failed = spinney.report.ModelResult("broken", "Broken", failure="ValueError: no")
    result.results.append(failed)
    plot.comparison(result, ax=ax)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["baseline", "broken (failed)"]


def test_invalid_arguments_raise() -> None:
    from spinney import plot
    from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

    X = np.arange(20.0).reshape(10, 2)
    regressor = DecisionTreeRegressor().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="sizes: expected numbers or shares of rows, got"):
        plot.learning_curve(DecisionTreeClassifier(), X, X[:, 0] > 9, sizes=[])
    with pytest.raises(ValueError, match="model: expected a classifier, got DecisionTreeRegressor"):
        plot.confusion(regressor, X, X[:, 0])
    with pytest.raises(ValueError, match="X: expected at least 1 row"):
        plot.partial_dependence(regressor, X[:0], 0)
