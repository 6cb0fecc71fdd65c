"""Export of fitted trees: text, rules, Graphviz, Matplotlib, SVG.

The tests use three kinds of trees. For numeric trees of scikit-learn, the text must be identical to
the text of scikit-learn. Hand-made trees have categories and directions for missing values; their
`apply_row` is a slow reference for the rules. The last tests use trees of Spinney.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.tree as sk
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from spinney.tree.export._plot import plot_tree, tidy_layout
from spinney.tree.export._rules import export_rules, is_missing
from spinney.tree.export._svg import export_svg
from spinney.tree.export._text import export_text
from spinney.tree.export.describe import format_number, format_set, format_share
from spinney.tree.export.graphviz import export_graphviz

SVG = "{http://www.w3.org/2000/svg}"


# --- hand-made trees ------------------------------------------------------------------------------


class FakeTree(SimpleNamespace):
    """Arrays of a scikit-learn tree plus Spinney's categories, from nested dicts."""

    def __init__(self, root, n_features, n_classes):
        nodes = []

        def add(spec):
            nodes.append(spec)
            spec["id"] = len(nodes) - 1
            for side in ("left", "right"):
                if side in spec:
                    add(spec[side])
            if "left" in spec:
                spec["counts"] = spec["left"]["counts"] + spec["right"]["counts"]
                spec["n"] = spec["left"]["n"] + spec["right"]["n"]
            else:
                spec["n"] = int(spec.get("n", spec["counts"].sum()))
                if n_classes == 1:  # counts are sums for a regression tree
                    spec["counts"] = spec["counts"] * spec["n"]

        add(root)
        ids = [(s["left"]["id"], s["right"]["id"]) if "left" in s else (-1, -1) for s in nodes]
        counts = np.array([s["counts"] for s in nodes], dtype=float)
        n = np.array([s["n"] for s in nodes])
        value = counts / (n[:, None] if n_classes == 1 else counts.sum(axis=1, keepdims=True))
        super().__init__(
            node_count=len(nodes),
            children_left=np.array([left for left, _ in ids]),
            children_right=np.array([right for _, right in ids]),
            feature=np.array([s.get("feature", -2) for s in nodes]),
            threshold=np.array(
                [s.get("threshold", np.nan) if "left" in s else -2.0 for s in nodes]
            ),
            category_start=np.array(
                [i if "codes" in s else -1 for i, s in enumerate(nodes)], dtype=np.int32
            ),
            impurity=1 - (value**2).sum(axis=1) if n_classes > 1 else np.linspace(90, 1, len(n)),
            n_node_samples=n,
            weighted_n_node_samples=n.astype(float),
            value=value[:, None, :],
            n_classes=np.array([n_classes]),
            n_outputs=1,
            n_features=n_features,
            missing_go_to_left=np.array([s.get("missing", False) for s in nodes], dtype=np.uint8),
        )
        self._codes = [s.get("codes") for s in nodes]

    def left_categories(self, node):
        return np.array(self._codes[node][0], dtype=np.int32)

    def right_categories(self, node):
        return np.array(self._codes[node][1], dtype=np.int32)


class FakeEstimator(BaseEstimator):
    def __init__(self, criterion="gini"):
        self.criterion = criterion

    def fit(self, root, names, categories, classes=None):
        self.tree_ = FakeTree(root, len(names), 1 if classes is None else len(classes))
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.categories_ = categories
        if classes is not None:
            self.classes_ = np.array(classes)
        return self

    def apply_row(self, row):
        """Return the leaf of a row, by definition."""
        tree, node = self.tree_, 0
        while tree.children_left[node] >= 0:
            value = row[tree.feature[node]]
            left, right = tree.children_left[node], tree.children_right[node]
            goes_left = bool(tree.missing_go_to_left[node])
            if tree.category_start[node] < 0:
                if not is_missing(value):
                    goes_left = value <= tree.threshold[node]
            else:
                known_values = list(self.categories_[tree.feature[node]])
                if not is_missing(value) and value in known_values:
                    code = known_values.index(value)
                    goes_left = tree.n_node_samples[left] > tree.n_node_samples[right]
                    if code in tree.left_categories(node):
                        goes_left = True
                    elif code in tree.right_categories(node):
                        goes_left = False
            node = left if goes_left else right
        return node


class FakeClassifier(ClassifierMixin, FakeEstimator):
    pass


class FakeRegressor(RegressorMixin, FakeEstimator):
    pass


def leaf(*counts, n=None):
    spec = {"counts": np.array(counts, dtype=float)}
    return spec if n is None else spec | {"n": n}


COLOURS = np.array(["blue", "green", "red", "white", "yellow"], dtype=object)


def colour_tree():
    """Return a tree with three splits on colour and two splits on age."""
    root = {
        "feature": 0, "codes": ([0, 2], [1, 3, 4]), "missing": True,
        "left": {
            "feature": 1, "threshold": 30.5, "missing": False,
            "left": leaf(40, 2),
            "right": {"feature": 0, "codes": ([2], [0]), "left": leaf(3, 25), "right": leaf(9, 8)},
        },
        "right": {
            "feature": 1, "threshold": 60.25, "missing": True,
            "left": {"feature": 0, "codes": ([1], [4]), "left": leaf(1, 50), "right": leaf(7, 4)},
            "right": leaf(12, 1),
        },
    }  # fmt: skip
    return FakeClassifier().fit(root, ["colour", "age"], [COLOURS, None], ["no", "yes"])


def wide_tree():
    """Return a regression tree with 40 towns with long names."""
    towns = np.array([f"Llanfair-upon-{chr(65 + i % 26)}{i:02d}" for i in range(40)], dtype=object)
    days = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], dtype=object)
    root = {
        "feature": 0, "codes": (list(range(0, 40, 2)), list(range(1, 40, 2))),
        "left": {
            "feature": 1, "codes": ([5, 6], [0, 1, 2, 3, 4]), "missing": True,
            "left": leaf(12.5, n=30), "right": leaf(-3.25, n=70),
        },
        "right": {
            "feature": 0, "codes": ([1], list(range(3, 40, 2))), "missing": True,
            "left": leaf(40.0, n=9),
            "right": {
                "feature": 2, "threshold": np.inf, "left": leaf(1.0, n=10),
                "right": leaf(22.0, n=40),
            },
        },
    }  # fmt: skip
    return FakeRegressor(criterion="squared_error").fit(
        root, ["town", "day of the week", "price"], [towns, days, None]
    )


def random_tree(rng):
    """Return a tree of random splits; some of them contradict their ancestors."""
    categories = [COLOURS, None, np.array([1, 2, 3]), None]

    def grow(depth):
        if depth == 0 or rng.random() < 0.15:
            return leaf(*rng.integers(1, 30, 3))
        feature = int(rng.integers(4))
        spec = {"feature": feature, "missing": bool(rng.integers(2))}
        if categories[feature] is None:
            spec["threshold"] = np.inf if rng.random() < 0.1 else float(rng.integers(-5, 5)) / 2
        else:
            # Side 2 means: not among the rows of this node.
            side = rng.integers(0, 3, len(categories[feature]))
            spec["codes"] = (np.flatnonzero(side == 0).tolist(), np.flatnonzero(side == 1).tolist())
        return spec | {"left": grow(depth - 1), "right": grow(depth - 1)}

    return FakeClassifier().fit(grow(5), ["colour", "a", "level", "b"], categories, ["x", "y", "z"])


def random_row(rng):
    def pick(values):
        return values[int(rng.integers(len(values)))]

    numbers = [None, np.nan, np.inf, -np.inf, *(np.arange(-12, 12) / 4)]
    return [
        pick([*COLOURS, "mauve", None, np.nan]),
        pick(numbers),
        pick([1, 2, 3, 4, None, np.nan]),
        pick(numbers),
    ]


# --- trees of scikit-learn: identical text ------------------------------------------------------


@pytest.fixture(scope="module")
def numeric_trees():
    rng = np.random.default_rng(0)
    iris, diabetes = load_iris(), load_diabetes()
    with_missing = np.where(rng.random(iris.data.shape) < 0.2, np.nan, iris.data)
    weights = rng.random(150)
    two = np.c_[iris.target, iris.target > 1]
    return [
        sk.DecisionTreeClassifier(random_state=0).fit(iris.data, iris.target),
        sk.DecisionTreeClassifier(random_state=0).fit(with_missing, iris.target_names[iris.target]),
        sk.DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=7, random_state=0).fit(
            iris.data, iris.target, sample_weight=weights
        ),
        sk.DecisionTreeClassifier(max_depth=3, random_state=0).fit(iris.data, two),
        sk.DecisionTreeClassifier().fit(iris.data, np.ones(150)),
        sk.DecisionTreeRegressor(max_depth=4, random_state=0).fit(diabetes.data, diabetes.target),
        sk.DecisionTreeRegressor(max_depth=2, random_state=0).fit(
            diabetes.data, np.c_[diabetes.target, -diabetes.target]
        ),
        sk.DecisionTreeRegressor().fit(iris.data, np.ones(150)),
    ]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_depth": 0},
        {"max_depth": 2, "spacing": 1, "decimals": 0},
        {"show_weights": True, "decimals": 4},
    ],
)
def test_text_equals_that_of_scikit_learn(numeric_trees, options):
    for tree in numeric_trees:
        assert export_text(tree, **options) == sk.export_text(tree, **options)
        names = [f"name {i}" for i in range(tree.n_features_in_)]
        assert export_text(tree, feature_names=names, **options) == sk.export_text(
            tree, feature_names=names, **options
        )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"filled": True, "rounded": True, "leaves_parallel": True, "class_names": True},
        {"special_characters": True, "proportion": True, "rotate": True, "node_ids": True},
        {"max_depth": 1, "label": "root", "precision": 1, "filled": True},
        {"label": "none", "impurity": False, "fontname": "sans"},
    ],
)
def test_graphviz_equals_that_of_scikit_learn(numeric_trees, options):
    for tree in numeric_trees:
        assert export_graphviz(tree, **options) == sk.export_graphviz(tree, **options)
        names = [f'"name" {i}' for i in range(tree.n_features_in_)]
        assert export_graphviz(tree, feature_names=names, **options) == sk.export_graphviz(
            tree, feature_names=names, **options
        )


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.mark.parametrize(
    "options",
    [{}, {"filled": True, "rounded": True, "max_depth": 1}, {"node_ids": True, "fontsize": 7}],
)
def test_plot_equals_that_of_scikit_learn(pyplot, numeric_trees, options):
    for tree in numeric_trees:
        drawn = []
        for plot in (plot_tree, sk.plot_tree):
            boxes = plot(tree, ax=pyplot.figure().add_subplot(), **options)
            drawn.append([(b.get_text(), tuple(np.round(b.xyann, 9))) for b in boxes])
            drawn[-1].append(round(boxes[0].get_fontsize(), 9))
            patches = [b.get_bbox_patch() for b in boxes]
            drawn[-1].append([None if p is None else p.get_facecolor() for p in patches])
        assert drawn[0] == drawn[1]


def test_invalid_arguments_raise():
    tree = sk.DecisionTreeClassifier()
    writers = (export_text, export_graphviz, export_rules, export_svg, plot_tree)
    for export in writers:
        with pytest.raises(NotFittedError):
            export(tree)
    tree.fit([[0, 1], [1, 0]], [0, 1])
    for export in writers:
        with pytest.raises(TypeError, match="is not an estimator instance"):
            export(tree.tree_)
        with pytest.raises(ValueError, match="feature_names"):
            export(tree, feature_names=["a"])
    with pytest.raises(TypeError, match="decision_tree"):
        export_text(LinearRegression().fit([[0], [1]], [0, 1]))
    for export in (export_text, export_rules, export_svg):
        with pytest.raises(ValueError, match="Got 1 while the tree was fitted with 2 classes"):
            export(tree, class_names=["a"])
        with pytest.raises(ValueError, match="show_missing"):
            export(tree, show_missing="sometimes")
    with pytest.raises(ValueError, match="All feature names must be strings"):
        export_graphviz(tree, feature_names=["a", 1])
    with pytest.raises(ValueError, match="max_rules"):
        export_rules(tree, max_rules=0)


def chain_tree(depth):
    """Return a tree that separates one leaf at each level."""
    estimator = FakeRegressor(criterion="squared_error").fit(leaf(1.0, n=1), ["x"], None)
    tree, n = estimator.tree_, 2 * depth + 1
    inner = np.arange(n) % 2 == 0
    inner[-1] = False
    tree.node_count = n
    tree.children_left = np.where(inner, np.arange(n) + 1, -1)
    tree.children_right = np.where(inner, np.arange(n) + 2, -1)
    tree.feature = np.where(inner, 0, -2)
    tree.threshold = np.where(inner, np.arange(n) / 2.0, -2.0)
    tree.category_start = np.full(n, -1)
    tree.impurity = np.ones(n)
    tree.n_node_samples = np.where(inner, n - np.arange(n), 1)
    tree.weighted_n_node_samples = tree.n_node_samples.astype(float)
    tree.value = np.arange(n, dtype=float).reshape(n, 1, 1)
    tree.missing_go_to_left = np.zeros(n, dtype=np.uint8)
    return estimator


def test_export_of_deep_trees_does_not_overflow_the_stack():
    tree = chain_tree(1500)
    assert export_text(tree, max_depth=None).count("value") == 1501
    assert export_graphviz(tree).count("->") == 3000
    assert len(export_rules(tree)) == 1501
    assert len(node_boxes(export_svg(tree))) == 3001


# --- categories and missing values ----------------------------------------------------------------


def test_text_of_categories_and_missing_values():
    expected = """\
|--- colour in {blue, red}
|   |--- age <= 30.50
|   |   |--- class: no
|   |--- age >  30.50
|   |   |--- colour in {red}
|   |   |   |--- class: yes
|   |   |--- colour not in {red}
|   |   |   |--- class: no
|--- colour not in {blue, red}
|   |--- age <= 60.25
|   |   |--- colour not in {yellow}
|   |   |   |--- class: yes
|   |   |--- colour in {yellow}
|   |   |   |--- class: no
|   |--- age >  60.25
|   |   |--- class: no
"""
    assert export_text(colour_tree()) == expected
    with_missing = export_text(colour_tree(), show_missing=True).splitlines()
    assert with_missing[0] == "|--- colour in {blue, red} or missing"
    assert with_missing[1] == "|   |--- age <= 30.50"
    assert with_missing[3] == "|   |--- age >  30.50 or missing"
    assert export_text(colour_tree(), show_missing="auto").splitlines() == with_missing
    assert "feature_0 in" in export_text(colour_tree(), feature_names=["feature_0", "feature_1"])


def test_long_sets_are_abbreviated():
    text = export_text(wide_tree())
    assert "… (+12)}" in text
    assert "day of the week in {Sat, Sun}" in text


def test_text_of_numeric_trees_uses_generic_names():
    data = load_iris(as_frame=True)
    tree = sk.DecisionTreeClassifier(random_state=0).fit(data.data, data.target)
    assert "petal" not in export_text(tree)
    assert "petal" in str(export_rules(tree)[0])
    assert "petal" in export_svg(tree)


def test_rules_as_text():
    rules = export_rules(colour_tree())
    assert [str(rule) for rule in rules] == [
        "IF colour in {blue, red} or missing AND age <= 30.5 THEN no (p=0.95, n=42)",
        "IF colour in {red} AND age > 30.5 or missing THEN yes (p=0.89, n=28)",
        "IF colour in {blue} or missing AND age > 30.5 or missing THEN no (p=0.53, n=17)",
        "IF colour in {green, white} AND age <= 60.25 or missing THEN yes (p=0.98, n=51)",
        "IF colour in {yellow} AND age <= 60.25 or missing THEN no (p=0.64, n=11)",
        "IF colour not in {blue, red} AND age > 60.25 THEN no (p=0.92, n=13)",
    ]
    plain = export_rules(colour_tree(), show_missing=False, class_names=["N", "Y"])
    assert str(plain[0]) == "IF colour in {blue, red} AND age <= 30.5 THEN N (p=0.95, n=42)"
    assert (plain[0].prediction, plain[0].label) == ("no", "N")
    assert rules[1].covers({"colour": "red", "age": 44})
    assert rules[2].covers(["mauve", None])
    largest = export_rules(colour_tree(), max_rules=2)
    assert [rule.n_samples for rule in largest] == [42, 51]
    largest = export_rules(colour_tree(), max_rules=2, order="coverage")
    assert [rule.n_samples for rule in largest] == [51, 42]


def test_rules_of_regression_trees():
    texts = [str(rule) for rule in export_rules(wide_tree())]
    assert texts[-1].endswith("price is missing THEN 22 (n=40)")
    assert texts[-2].endswith("price is not missing THEN 1 (n=10)")
    single_leaf = sk.DecisionTreeRegressor().fit([[0], [1]], [2.5, 2.5])
    assert [str(rule) for rule in export_rules(single_leaf)] == ["IF true THEN 2.5 (n=2)"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_exactly_one_rule_covers_a_row(seed):
    rng = np.random.default_rng(seed)
    estimator = random_tree(rng)
    rules = export_rules(estimator)
    names = estimator.feature_names_in_
    assert sum(rule.n_samples for rule in rules) == estimator.tree_.n_node_samples[0]
    for _ in range(40):
        row = random_row(rng)
        covering = [rule.node for rule in rules if rule.covers(row)]
        assert covering == [estimator.apply_row(row)]
        assert covering == [r.node for r in rules if r.covers(dict(zip(names, row, strict=True)))]
    for rule in rules:
        assert len({condition.feature for condition in rule.conditions}) == len(rule.conditions)


@pytest.mark.parametrize("outputs", [1, 2])
def test_rules_agree_with_scikit_learn(outputs):
    rng = np.random.default_rng(1)
    X = rng.integers(-3, 4, (200, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    y = rng.integers(0, 3, (200, outputs))
    tree = sk.DecisionTreeClassifier(max_depth=6, random_state=0)
    tree.fit(X, y[:, 0] if outputs == 1 else y)
    rules = export_rules(tree)
    for row, node, predicted in zip(X, tree.apply(X), tree.predict(X), strict=True):
        (rule,) = [rule for rule in rules if rule.covers(row)]
        assert rule.node == node
        assert np.array_equal(rule.prediction, predicted)


def test_graphviz_and_plot_of_categories(pyplot):
    dot = export_graphviz(colour_tree(), filled=True)
    assert '0 [label="colour in {blue, red}\\ngini = ' in dot
    assert "age <= 60.25" in dot
    assert "nan" not in dot
    html = export_graphviz(wide_tree(), special_characters=True)
    assert "day of the week in {Sat, Sun}" in html
    boxes = plot_tree(colour_tree(), class_names=["N", "Y"], filled=True)
    assert boxes[0].get_text().startswith("colour in {blue, red}\ngini = ")
    with_special_characters = colour_tree()
    with_special_characters.categories_ = [
        np.array(['a"b', "\\", "<c>", "d", "e"], dtype=object),
        None,
    ]
    assert '{a\\"b, <c>}' in export_graphviz(with_special_characters)
    assert '{a"b, &lt;c&gt;}' in export_graphviz(with_special_characters, special_characters=True)


def test_graphviz_writes_to_paths_and_streams(tmp_path):
    tree, path, stream = colour_tree(), tmp_path / "tree.dot", io.StringIO()
    assert export_graphviz(tree, str(path)) is None
    assert export_graphviz(tree, stream) is None
    assert path.read_text(encoding="utf-8") == stream.getvalue() == export_graphviz(tree)


# --- SVG ------------------------------------------------------------------------------------------


def svg_texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(SVG + "text")]


def node_boxes(svg):
    """Return the boxes of the nodes, as (x, y, width, height)."""
    boxes = [group.find(SVG + "rect") for group in ET.fromstring(svg).iter(SVG + "g")]
    return [tuple(float(b.get(k)) for k in ("x", "y", "width", "height")) for b in boxes]


def overlapping_pairs(boxes):
    boxes = np.array(boxes)
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    separated = (low[:, None] >= high[None]) | (low[None] >= high[:, None])
    return np.argwhere(np.triu(~separated.any(axis=2), 1))


def test_svg_shows_every_node(numeric_trees):
    for tree in [*numeric_trees, colour_tree(), wide_tree()]:
        svg = export_svg(tree)
        assert svg == export_svg(tree)
        boxes = node_boxes(svg)
        assert len(boxes) == tree.tree_.node_count
        assert len(overlapping_pairs(boxes)) == 0
        root = ET.fromstring(svg)
        width, height = float(root.get("width")), float(root.get("height"))
        assert all(x >= 0 and y >= 0 for x, y, _, _ in boxes)
        assert all(x + w <= width and y + h <= height for x, y, w, h in boxes)
        assert len(list(root.iter(SVG + "title"))) == len(boxes)


def test_svg_has_no_external_references():
    svg = export_svg(colour_tree())
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<(script|style|image|use|link)|href|url\(| id=", svg)


def test_svg_of_a_large_tree_fits_a_page():
    X, y = load_diabetes(return_X_y=True)
    tree = sk.DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, y)
    root = ET.fromstring(export_svg(tree))
    assert float(root.get("width")) < 1200
    assert float(root.get("height")) < 40 * tree.get_n_leaves()


def test_svg_of_categories_and_missing_values():
    texts = svg_texts(export_svg(colour_tree()))
    assert {"blue, red", "green, white, yellow", "≤ 30.5", "> 30.5"} <= set(texts)
    assert texts.count("?") == 5 + 1  # each split, and the legend
    assert "missing values go here" in texts
    assert "?" not in svg_texts(export_svg(colour_tree(), show_missing=False))
    texts = svg_texts(export_svg(wide_tree()))
    assert {"Sat, Sun", "present", "missing"} <= set(texts)
    assert any("… (+19)" in text for text in texts)


def test_svg_marks_missing_values_only_where_needed():
    X, y = load_breast_cancer(return_X_y=True)
    tree = sk.DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    assert "?" not in svg_texts(export_svg(tree))
    assert "?" in svg_texts(export_svg(tree, show_missing=True))


def test_svg_with_a_maximal_depth():
    X, y = load_diabetes(return_X_y=True)
    tree = sk.DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, y)
    for depth in range(6):
        svg = export_svg(tree, max_depth=depth)
        hidden = [int(n) for n in re.findall(r"… (\d+) more nodes", svg)]
        assert sum(hidden) + len(node_boxes(svg)) == tree.tree_.node_count
    assert hidden == []


def test_svg_escapes_and_abbreviates_names():
    X, y = load_iris(return_X_y=True)
    tree = sk.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    names = ["a<b>&\"c'", "tab\tand\x00nul\x1b", "\ud800 lone", "very long name " * 20]
    svg = export_svg(tree, feature_names=names, class_names=["<&>", "長い名前" * 20, "]]>"])
    svg.encode("utf-8")
    texts = svg_texts(svg)
    assert any(text.startswith("very long") and text.endswith("…") for text in texts)
    titles = [element.text for element in ET.fromstring(svg).iter(SVG + "title")]
    assert any("very long name " * 20 in title for title in titles)
    assert len(overlapping_pairs(node_boxes(svg))) == 0


def test_svg_width_paths_and_streams(tmp_path):
    tree, path, stream = colour_tree(), tmp_path / "tree.svg", io.StringIO()
    natural = ET.fromstring(export_svg(tree, out_file=path))
    svg = export_svg(tree, width=500, out_file=stream)
    assert stream.getvalue() == svg
    assert ET.parse(path).getroot().get("width") == natural.get("width")
    scaled = ET.fromstring(svg)
    assert scaled.get("width") == "500"
    assert scaled.get("viewBox") == natural.get("viewBox")


def test_svg_of_many_classes_and_outputs():
    rng = np.random.default_rng(0)
    X = rng.random((300, 3))
    tree = sk.DecisionTreeClassifier(max_depth=4).fit(X, np.arange(300) % 60)
    assert "… (+36)" in svg_texts(export_svg(tree))
    tree = sk.DecisionTreeClassifier(max_depth=3).fit(X, rng.integers(0, 3, (300, 6)))
    assert {"output 0:", "output 2:"} <= set(svg_texts(export_svg(tree)))
    assert len(overlapping_pairs(node_boxes(export_svg(tree)))) == 0


# --- helpers --------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_layout_never_overlaps_and_centres_parents(seed):
    rng = np.random.default_rng(seed)
    children, depth = [[]], [0]
    for _ in range(int(rng.integers(0, 40))):
        parent = int(rng.choice([i for i, c in enumerate(children) if not c]))
        for _ in range(2):
            children[parent].append(len(children))
            children.append([])
            depth.append(depth[parent] + 1)
    sizes = rng.uniform(0.5, 3, len(children))
    positions = np.array(tidy_layout(children, sizes, 0.25, 0.5))
    assert np.isclose((positions - sizes / 2).min(), 0)
    for level in set(depth):
        on_level = np.flatnonzero(np.array(depth) == level)
        order = on_level[np.argsort(positions[on_level])]
        distances = (positions - sizes / 2)[order[1:]] - (positions + sizes / 2)[order[:-1]]
        assert np.all(distances >= 0.25 - 1e-9)
    for node, pair in enumerate(children):
        if pair:
            assert np.isclose(positions[node], positions[pair].mean())
            assert positions[pair[0]] < positions[pair[1]]


def test_numbers_are_formatted():
    assert [format_number(x, 2) for x in (1.5, 100.0, -0.001, 1e-9, 0.0)] == [
        "1.5", "100", "-0.001", "1e-09", "0",
    ]  # fmt: skip
    assert format_number(np.inf, 3) == "inf"
    assert format_number(2.6, 0) == "3"
    assert [format_share(x) for x in (0, 0.001, 0.5, 0.999, 1)] == [
        "0%", "<1%", "50%", ">99%", "100%",
    ]  # fmt: skip
    assert format_set([], 3) == "{}"


def test_missing_values_are_recognized():
    pandas = pytest.importorskip("pandas")
    assert all(is_missing(x) for x in (None, np.nan, float("nan"), pandas.NA, pandas.NaT))
    assert not any(is_missing(x) for x in (0, "", "nan", np.inf))


# --- trees of Spinney -----------------------------------------------------------------------------


@pytest.fixture
def spinney_tree():
    import spinney.tree

    return spinney.tree


def as_scikit_learn(estimator):
    """Return a tree of scikit-learn's class with our arrays, for its export functions."""
    kind = sk.DecisionTreeClassifier if hasattr(estimator, "classes_") else sk.DecisionTreeRegressor
    sklearn_tree = kind(criterion=estimator.criterion)
    for name in ("tree_", "classes_", "n_features_in_", "n_outputs_"):
        if hasattr(estimator, name):
            setattr(sklearn_tree, name, getattr(estimator, name))
    return sklearn_tree


@pytest.mark.parametrize("task", ["classes", "two outputs", "numbers"])
def test_export_of_numeric_trees(spinney_tree, pyplot, task):
    if task == "numbers":
        X, y = load_diabetes(return_X_y=True)
        tree = spinney_tree.DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    else:
        X, y = load_iris(return_X_y=True)
        y = y if task == "classes" else np.c_[y, y > 1]
        tree = spinney_tree.DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    sklearn_tree = as_scikit_learn(tree)
    assert spinney_tree.export_text(tree, show_weights=True) == sk.export_text(
        sklearn_tree, show_weights=True
    )
    assert spinney_tree.export_graphviz(tree, filled=True) == sk.export_graphviz(
        sklearn_tree, filled=True
    )
    texts = [
        [b.get_text() for b in plot(t)]
        for plot, t in ((plot_tree, tree), (sk.plot_tree, sklearn_tree))
    ]
    assert texts[0] == texts[1]
    assert len(node_boxes(spinney_tree.export_svg(tree))) == tree.tree_.node_count
    rules = spinney_tree.export_rules(tree)
    for row, node, predicted in zip(X, tree.apply(X), tree.predict(X), strict=True):
        (rule,) = [rule for rule in rules if rule.covers(row)]
        assert rule.node == node
        assert np.allclose(rule.prediction, predicted)


def mixed_frame(rng, n):
    """Return a table of colours, towns (some rare) and ages, with missing values."""
    import pandas as pd

    frame = pd.DataFrame(
        {
            "colour": pd.Series(rng.choice(COLOURS, n)).astype("category"),
            "age": rng.integers(18, 80, n).astype(float),
            "town": pd.Series(rng.choice([f"town {i}" for i in range(30)], n)).astype("category"),
        }
    )
    for name in frame:
        frame.loc[rng.random(n) < 0.1, name] = np.nan
    return frame


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("task", ["two classes", "four classes", "numbers"])
def test_export_of_trees_with_categories(spinney_tree, pyplot, task, seed):
    rng = np.random.default_rng(seed)
    train, other = mixed_frame(rng, 300), mixed_frame(rng, 200)
    # Towns that are not in the training rows, and a tree that splits on towns deep down.
    other["town"] = other["town"].cat.add_categories(["elsewhere"])
    other.loc[:20, "town"] = "elsewhere"
    score = (
        train["colour"].isin(["red", "blue"]) * 20 + train["age"].fillna(99)
        + train["town"].cat.codes % 7 * 5 + rng.normal(0, 10, len(train))
    )  # fmt: skip
    if task == "numbers":
        tree = spinney_tree.DecisionTreeRegressor(max_depth=7, random_state=0).fit(train, score)
    else:
        y = np.digitize(score, np.quantile(score, [0.5] if "two" in task else [0.25, 0.5, 0.75]))
        tree = spinney_tree.DecisionTreeClassifier(max_depth=7, random_state=0).fit(train, y)
    assert np.any(np.asarray(tree.tree_.category_start) >= 0)
    rules = spinney_tree.export_rules(tree)
    for X in (train, other):
        rows = X.astype(object).to_dict("records")
        for row, node, predicted in zip(rows, tree.apply(X), tree.predict(X), strict=True):
            (rule,) = [rule for rule in rules if rule.covers(row)]
            assert rule.node == node
            assert rule.prediction == pytest.approx(predicted)
    svg = spinney_tree.export_svg(tree)
    assert len(node_boxes(svg)) == tree.tree_.node_count
    assert len(overlapping_pairs(node_boxes(svg))) == 0
    assert re.search(r"(colour|town) (not )?in \{", spinney_tree.export_text(tree))
    assert "nan" not in spinney_tree.export_graphviz(tree)
    assert spinney_tree.plot_tree(tree)
