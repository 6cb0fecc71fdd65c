"""Plots: no overlapping text, pyplot unchanged, invalid arguments."""

import subprocess
import sys
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes, load_iris, make_blobs

import spinney
from spinney import plot
from spinney.ensemble import RandomForestClassifier
from spinney.inspection import explain
from spinney.linear_model import LinearRegression
from spinney.plot._style import class_colours, shortened
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close():
    plt.close("all")  # tests of other files leave figures open
    yield
    plt.close("all")


def boxes_of(axes):
    """Return all visible texts of a figure with their boxes."""
    figure = axes.get_figure()
    figure.canvas.draw()
    texts = []
    for ax in figure.axes:
        labels = [ax.xaxis.label, ax.yaxis.label, ax.title, *ax.texts]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=False)
            labels += [label for position, label in ticks if low <= position <= high]
        if ax.get_legend() is not None:
            labels += ax.get_legend().get_texts()
        if not ax.axison:
            labels = list(ax.texts)
        for label in labels:
            if label.get_visible() and label.get_text().strip():
                # For annotations, the text and its box without the arrow.
                patch = label.get_bbox_patch()
                box = Text.get_window_extent(label) if patch is None else patch.get_window_extent()
                texts.append((label.get_text(), box))
    return texts


def assert_readable(axes):
    """Check that no two texts overlap and that none leaves the figure."""
    texts = boxes_of(axes)
    assert texts
    figure = axes.get_figure().bbox
    for i, (text, box) in enumerate(texts):
        assert box.x0 >= figure.x0 - 1, text
        assert box.x1 <= figure.x1 + 1, text
        assert box.y0 >= figure.y0 - 1, text
        assert box.y1 <= figure.y1 + 1, text
        for other, other_box in texts[:i]:
            overlap_x = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
            overlap_y = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
            assert overlap_x <= 1 or overlap_y <= 1, (text, other)


@pytest.fixture(scope="module", params=[(3, 2), (300, 40)], ids=str)
def table(request):
    """Create a table with few or many columns and classes, with long names."""
    n_columns, n_classes = request.param
    X, y = make_blobs(200, n_columns, centers=n_classes, random_state=0)
    names = [f"the measured length of part {j}" for j in range(n_columns)]
    class_names = np.array([f"class number {c}" for c in range(n_classes)])
    frame, y = pd.DataFrame(X, columns=names), class_names[y]
    return frame, y, RandomForestClassifier(5, random_state=0).fit(frame, y)


@pytest.mark.parametrize(
    "draw",
    [
        lambda m, X, y: plot.importances(m),
        lambda m, X, y: plot.importances(m, X.iloc[:, :], y, n_repeats=1, max_columns=30),
        lambda m, X, y: plot.decision_boundary(m, X, y, n_steps=20),
        lambda m, X, y: plot.decision_boundary(m, X, y, features=X.columns[1], n_steps=20),
        lambda m, X, y: plot.confusion(m, X, y),
        lambda m, X, y: plot.confusion(m, X, y, normalize=True),
        lambda m, X, y: plot.roc(m, X, y),
        lambda m, X, y: plot.precision_recall(m, X, y),
        lambda m, X, y: plot.calibration(m, X, y),
        lambda m, X, y: plot.margins(m, X, y),
        lambda m, X, y: plot.partial_dependence(m, X, 0, n_values=5),
        lambda m, X, y: plot.partial_dependence(m, X, (0, 1), target=y[0], n_values=4),
        lambda m, X, y: plot.tree(m.estimators_[0]),
        lambda m, X, y: plot.shap_summary(explain(m, X), output=1),
        lambda m, X, y: plot.shap_summary(explain(m, X), output=1, kind="bars"),
        lambda m, X, y: plot.shap_dependence(explain(m, X), 2, output=1),
        lambda m, X, y: plot.shap_waterfall(explain(m, X), 3, output=1),
    ],
    ids=lambda draw: draw.__code__.co_names[1],
)
def test_texts_do_not_overlap(table, draw):
    X, y, model = table
    assert_readable(draw(model, X, y))


def test_importances_show_at_most_twenty_columns():
    X, y = make_blobs(60, 300, centers=2, random_state=0)
    tree = DecisionTreeClassifier().fit(X, y)
    axes = plot.importances(tree)
    assert len(axes.patches) == 20
    assert axes.texts[0].get_text() == "20 of 300 columns"


@pytest.mark.parametrize("n", [2, 12, 60])
def test_plots_of_many_categories_are_readable(n):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=600)})
    X["town"] = [f"the town called number {i % n}" for i in range(600)]
    tree = DecisionTreeRegressor(max_depth=5).fit(X, random.normal(size=600))
    bars = plot.partial_dependence(tree, X, "town")
    assert len(bars.patches) == min(n, 20)
    assert_readable(bars)
    assert_readable(plot.partial_dependence(tree, X, ("a", "town"), n_values=5, max_rows=20))
    for columns in (("a", "town"), ("town", "a")):
        assert_readable(plot.accumulated_local_effects(tree, X, columns, n_intervals=5))
    assert_readable(plot.decision_boundary(tree, X, n_steps=20))


def test_texts_of_other_plots_do_not_overlap():
    X, y = load_diabetes(return_X_y=True)
    tree = DecisionTreeRegressor(max_depth=3).fit(X, y)
    assert_readable(plot.residuals(tree, X, y))
    assert_readable(plot.learning_curve(tree, X, y, sizes=[0.5, 1.0], cv=2))
    assert_readable(plot.validation_curve(tree, X, y, "max_depth", [1, 2, 100], cv=2))
    criteria = ["squared_error", "friedman_mse", "absolute_error", "poisson"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_readable(plot.validation_curve(tree, X, y, "criterion", criteria, cv=2))
    X[::5, 2] = np.nan
    assert_readable(plot.partial_dependence(tree, X, 2))
    assert_readable(plot.partial_dependence(tree, X, (2, 3), max_rows=50))
    result = spinney.compare(*load_iris(return_X_y=True), cv=2)
    assert_readable(plot.comparison(result))


# ------------------------------------------------------------------ side effects


def every_plot(ax):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    regressor = DecisionTreeRegressor(max_depth=2).fit(X, y)
    result = spinney.compare(X, y, models=["baseline"], cv=2)
    yield plot.decision_boundary(model, X, y, n_steps=5, ax=ax)
    yield plot.learning_curve(model, X, y, sizes=[1.0], cv=2, ax=ax)
    yield plot.validation_curve(model, X, y, "max_depth", [1], cv=2, ax=ax)
    yield plot.calibration(model, X, y, ax=ax)
    yield plot.residuals(regressor, X, y, ax=ax)
    yield plot.importances(model, X, y, n_repeats=1, ax=ax)
    yield plot.partial_dependence(model, X, 0, n_values=3, ax=ax)
    yield plot.accumulated_local_effects(model, X, 0, ax=ax)
    yield plot.margins(model, X, y, ax=ax)
    yield plot.confusion(model, X, y, ax=ax)
    yield plot.roc(model, X, y, ax=ax)
    yield plot.precision_recall(model, X, y, ax=ax)
    yield plot.comparison(result, ax=ax)
    yield plot.tree(model, ax=ax)
    yield plot.influence(LinearRegression().fit(X, y), X, y, ax=ax)
    explanation = explain(regressor, X)
    yield plot.shap_summary(explanation, ax=ax)
    yield plot.shap_dependence(explanation, 0, ax=ax)
    yield plot.shap_waterfall(explanation, ax=ax)


def test_pyplot_and_its_settings_are_unchanged():
    before = dict(mpl.rcParams)
    ax = Figure().subplots()
    current = plt.figure()
    for drawn in every_plot(ax):
        assert drawn is ax
    assert plt.get_fignums() == [current.number]
    assert plt.gcf() is current
    assert not current.axes
    assert dict(mpl.rcParams) == before


def test_plots_without_axes_create_figures():
    drawn = list(every_plot(None))
    assert len(drawn) == len(plot.__all__)
    assert len({ax.get_figure().number for ax in drawn}) == len(drawn)
    for ax in drawn:
        assert not ax.spines["top"].get_visible() or not ax.axison


def test_models_and_data_are_unchanged():
    X, y = load_iris(return_X_y=True)
    X.flags.writeable = y.flags.writeable = False
    model = DecisionTreeClassifier(max_depth=2)
    plot.learning_curve(model, X, y, sizes=[1.0], cv=2, ax=Figure().subplots())
    assert not hasattr(model, "tree_")
    model.fit(X, y)
    plot.importances(model, X[:, ::-1][:, ::-1], y, n_repeats=1, ax=Figure().subplots())
    plot.partial_dependence(model, X, 2, ax=Figure().subplots())
    plot.decision_boundary(model, X, y, n_steps=5, ax=Figure().subplots())


def test_matplotlib_is_imported_late_and_its_absence_explained():
    script = """
import sys
import spinney.plot
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
try:
    spinney.plot.roc([0.1, 0.9], y=[0, 1])
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'spinney[plot]'" in run.stdout


def test_sparse_matrices_lists_and_single_rows():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    of_list = plot.partial_dependence(tree, X.tolist(), 2, n_values=4, ax=Figure().subplots())
    of_sparse = plot.partial_dependence(tree, csr_array(X), 2, n_values=4, ax=Figure().subplots())
    for list_line, sparse_line in zip(of_list.lines, of_sparse.lines, strict=True):
        assert np.array_equal(list_line.get_xydata(), sparse_line.get_xydata())
    single = plot.partial_dependence(tree, X[:1], 2, ax=Figure().subplots())
    assert single.lines[0].get_ydata()[0] == tree.predict_proba(X[:1])[0, 0]
    single.get_figure().canvas.draw()
    for features in ([0, 1], [2]):
        boundary = plot.decision_boundary(
            tree, X[:1], y[:1], features=features, ax=Figure().subplots()
        )
        boundary.get_figure().canvas.draw()
    plot.residuals([1.0], y=[2.0], ax=Figure().subplots()).get_figure().canvas.draw()


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_plots_of_huge_and_tiny_values(scale):
    X, y = make_blobs(50, 2, centers=2, random_state=0)
    X = X / np.abs(X).max() * scale
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    for draw in (
        plot.decision_boundary,
        lambda m, X, y, ax: plot.partial_dependence(m, X, 0, ax=ax),
    ):
        axes = draw(tree, X, y, ax=Figure().subplots())
        axes.get_figure().canvas.draw()


def test_plots_of_constant_columns():
    X = np.c_[np.ones(20), np.arange(20.0)]
    tree = DecisionTreeRegressor().fit(X, X[:, 1])
    for columns in (0, (0, 1)):
        axes = plot.partial_dependence(tree, X, columns, n_values=5, ax=Figure().subplots())
        axes.get_figure().canvas.draw()
    plot.decision_boundary(tree, X, X[:, 1], n_steps=5, ax=Figure().subplots())


IRIS = load_iris(return_X_y=True)
TREE = DecisionTreeClassifier(max_depth=2).fit(*IRIS)
TWO_OUTPUTS = DecisionTreeClassifier(max_depth=2).fit(IRIS[0], np.c_[IRIS[1], IRIS[1]])


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda X, y: plot.roc(TREE, X, y, ax=np.zeros(2)), "ax: expected matplotlib Axes"),
        (lambda X, y: plot.roc(TREE, X), "y: expected the true classes, got None"),
        (lambda X, y: plot.roc(TREE, y=y), "X: expected rows"),
        (lambda X, y: plot.roc(TREE, X, y[:5]), "y: expected 150 values"),
        (lambda X, y: plot.roc(TREE, X, y + 7), "y: expected classes of the model"),
        (lambda X, y: plot.roc({}, X, y), "models: expected one or more"),
        (lambda X, y: plot.roc([0.1, 0.2], y=[1, 1]), "expected rows of class"),
        (lambda X, y: plot.roc([0.1, 0.2], y=["a", "a"]), "y: expected two classes, got only 'a'"),
        (lambda X, y: plot.roc(TWO_OUTPUTS, X, y), "models: expected one output, got 2"),
        (
            lambda X, y: plot.partial_dependence(TWO_OUTPUTS, X, 0),
            "model: expected one output, got 2",
        ),
        (lambda X, y: plot.decision_boundary(TWO_OUTPUTS, X), "model: expected one output, got 2"),
        (lambda X, y: plot.tree(RandomForestClassifier(2).fit(X, y)), "tree"),
        (lambda X, y: plot.roc([0.1, np.nan], y=[0, 1]), "without NaN"),
        (lambda X, y: plot.roc(["a", "b"], y=[0, 1]), "expected fitted classifiers or arrays"),
        (lambda X, y: plot.roc([0.1, 0.2, 0.3], y=[0, 1, 2]), "a column for each class"),
        (lambda X, y: plot.roc(TREE, X, y, positive=9), "positive: expected one of the classes"),
        (lambda X, y: plot.roc(TREE, X, np.where(y, y, np.nan)), "y: expected no missing values"),
        (lambda X, y: plot.calibration([-3.0, 4.0], y=[0, 1]), "expected probabilities"),
        (lambda X, y: plot.calibration(TREE, X, y, n_bins=0), "n_bins: expected"),
        (lambda X, y: plot.calibration(TREE, X, y, strategy="odd"), "strategy: expected"),
        (lambda X, y: plot.residuals(TREE, X, ["a"] * 150), "y: expected numbers, got 'a'"),
        (lambda X, y: plot.residuals([1.0, np.inf], y=[1, 2]), "model: expected finite"),
        (lambda X, y: plot.residuals([1.0], y=[1, 2]), "y: expected 1 values"),
        (lambda X, y: plot.residuals([], y=[]), "expected at least one row, got none"),
        (lambda X, y: plot.importances(TREE, kind="odd"), "kind: expected"),
        (lambda X, y: plot.shap_summary(explain(TREE, X), output=0, kind="odd"), "kind: expected"),
        (lambda X, y: plot.shap_summary(explain(TREE, X)), "output: expected a number or one of"),
        (lambda X, y: plot.shap_summary(explain(TREE, X), output=9), "output: expected a number"),
        (lambda X, y: plot.shap_summary(explain(TREE, X), output=0, max_rows=0), "max_rows: exp"),
        (lambda X, y: plot.shap_dependence(explain(TREE, X), "odd", output=0), "column: expected"),
        (lambda X, y: plot.shap_dependence(explain(TREE, X), 4, output=0), "column: expected"),
        (
            lambda X, y: plot.shap_dependence(explain(TREE, X), 0, colour_by="odd", output=0),
            "colour_by: expected",
        ),
        (lambda X, y: plot.shap_waterfall(explain(TREE, X), 150, output=0), "row: expected"),
        (lambda X, y: plot.importances(TREE, kind="permutation"), "expected X and y"),
        (lambda X, y: plot.importances(TREE, X, y, n_repeats=0), "n_repeats: expected"),
        (lambda X, y: plot.importances(TREE, X, y, max_rows=0), "max_rows: expected"),
        (lambda X, y: plot.importances(TREE, X, y, max_columns=0), "max_columns: expected"),
        (lambda X, y: plot.importances(TREE, X, y[:3]), "y: expected 150 values"),
        (lambda X, y: plot.partial_dependence(TREE, X, "width"), "columns: expected a column"),
        (lambda X, y: plot.partial_dependence(TREE, X, 4), "columns: expected a number below 4"),
        (lambda X, y: plot.partial_dependence(TREE, X, 1.5), "columns: expected the name"),
        (lambda X, y: plot.partial_dependence(TREE, X, (1, 1)), "two different"),
        (lambda X, y: plot.partial_dependence(TREE, X, (0, 1, 2)), "one column or two, got 3"),
        (lambda X, y: plot.partial_dependence(TREE, X, (0, 1)), "target: expected the class"),
        (lambda X, y: plot.partial_dependence(TREE, X, 0, target=7), "target: expected a class"),
        (lambda X, y: plot.partial_dependence(TREE, X, 0, n_values=1), "n_values: expected"),
        (lambda X, y: plot.partial_dependence(TREE, X, 0, individual=-1), "individual: expected"),
        (lambda X, y: plot.partial_dependence(TREE, X * np.nan, 0), "got only missing values"),
        (lambda X, y: plot.decision_boundary(TREE, X, y, features=[0, 0]), "two different"),
        (lambda X, y: plot.decision_boundary(TREE, X, y[:3]), "y: expected 150 values"),
        (
            lambda X, y: plot.decision_boundary(DecisionTreeRegressor().fit(X, y), X, ["a"] * 150),
            "y: expected numbers, got 'a'",
        ),
        (lambda X, y: plot.decision_boundary(TREE, X * np.nan), "features: expected a value"),
        (lambda X, y: plot.decision_boundary(TREE, X, n_steps=1), "n_steps: expected"),
        (lambda X, y: plot.validation_curve(TREE, X, y, "odd", [1]), "param: expected a param"),
        (lambda X, y: plot.validation_curve(TREE, X, y, "max_depth", []), "values: expected"),
        (lambda X, y: plot.learning_curve({}, X, y), "model: expected one or more"),
        (lambda X, y: plot.comparison([]), "result: expected the result of spinney.compare"),
        (lambda X, y: plot.confusion(TREE, X), "y: expected the true classes"),
        (lambda X, y: plot.confusion(y[:4], y=y), "y: expected 4 values"),
        (lambda X, y: plot.margins({}, X, y), "models: expected one or more"),
        (lambda X, y: plot.roc(DecisionTreeClassifier(), X, y), "not fitted"),
        (lambda X, y: plot.tree(DecisionTreeClassifier()), "not fitted"),
        (lambda X, y: plot.tree(ID3Classifier().fit(X.astype(int).astype(str), y)), "plot.tree"),
    ],
)
def test_invalid_arguments_raise(draw, message):
    with pytest.raises((ValueError, TypeError), match=message.replace("(", r"\(")):
        draw(*IRIS)
    assert not plt.get_fignums()  # no incomplete figure remains


def test_labels_are_shortened_and_classes_have_colours():
    assert shortened("short") == "short"
    assert len(shortened("x" * 100)) == 28
    assert shortened("two\nlines") == "two lines"
    assert shortened("a $b$") == r"a \$b\$"
    assert len(set(class_colours(60))) == 60
