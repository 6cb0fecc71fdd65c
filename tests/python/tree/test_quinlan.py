"""ID3, C4.5 and C4.5 rules: published trees, reference implementations, closed forms."""

import math
import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import KBinsDiscretizer

from spinney import _core
from spinney.datasets import load_play_tennis
from spinney.tree import (
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    ID3Classifier,
    export_graphviz,
    export_rules,
    export_svg,
    export_text,
    information_gain,
    plot_tree,
)
from support.examples import examples
from support.paths import TESTS

DATA = TESTS / "data"


def read(name):
    frame = pd.read_csv(DATA / f"{name}.csv", keep_default_na=False, na_values=[""])
    if name == "breast_cancer_ljubljana":
        frame["deg_malig"] = frame["deg_malig"].astype(str)
    return frame, frame.pop("target")


# ----------------------------------------------------------------------------- published results


def test_information_gains_of_play_tennis():
    X, y = load_play_tennis(return_X_y=True, as_frame=True)
    result = information_gain(X, y)
    assert result.names == ["outlook", "temperature", "humidity", "windy"]
    np.testing.assert_allclose(result.gain, [0.247, 0.029, 0.152, 0.048], atol=5e-4)
    np.testing.assert_allclose(result.split_info, [1.577, 1.557, 1.0, 0.985], atol=5e-4)
    np.testing.assert_allclose(result.gain_ratio, [0.156, 0.019, 0.152, 0.049], atol=6e-4)
    sunny = X["outlook"] == "sunny"  # the next node in the textbook
    result = information_gain(X[sunny], y[sunny])
    np.testing.assert_allclose(result.gain[[1, 2, 3]], [0.571, 0.971, 0.020], atol=5e-4)
    assert np.isnan(result.gain[0])


TENNIS = """\
|--- outlook = overcast
|   |--- class: yes
|--- outlook = rainy
|   |--- windy = no
|   |   |--- class: yes
|   |--- windy = yes
|   |   |--- class: no
|--- outlook = sunny
|   |--- humidity = high
|   |   |--- class: no
|   |--- humidity = normal
|   |   |--- class: yes
"""


@pytest.mark.parametrize("kind", [ID3Classifier, C45Classifier])
def test_tree_of_play_tennis(kind):
    X, y = load_play_tennis(return_X_y=True, as_frame=True)
    model = kind().fit(X, y)
    assert export_text(model) == TENNIS
    assert model.score(X, y) == 1
    # Arrays of strings, lists and other frames give the same tree.
    for other in (X.to_numpy(), X.to_numpy(dtype=object).tolist(), pl.from_pandas(X)):
        same = kind().fit(other, y)
        np.testing.assert_array_equal(same.tree_.feature, model.tree_.feature)
        np.testing.assert_array_equal(same.predict(other), y)


def test_tree_of_numeric_play_tennis():
    X, y = load_play_tennis(return_X_y=True, as_frame=True, numeric=True)
    text = export_text(C45Classifier().fit(X, y))
    assert "humidity <= 75" in text  # as in Quinlan's book
    assert "temperature" not in text


# Leaves as printed by C4.5 and WEKA's J48: weight of all rows and of misclassified rows.
PUBLISHED = {
    "labor": [(15.27, 2.27), (10.77, 4.77), (30.96, 1.0)],
    "votes": [
        (253.41, 3.75),
        (145.71, 4.0),
        (22.61, 3.32),
        (5.04, 0.02),
        (2.21, 0.0),
        (6.03, 1.03),
    ],
    "breast_cancer_ljubljana": [(228.39, 53.4), (1.01, 0.4), (26.2, 8.0), (30.4, 7.4)],
}
SPLIT_COLUMNS = {
    "labor": ["wage_increase_first_year", "statutory_holidays"],
    "votes": [
        "physician_fee_freeze",
        "synfuels_corporation_cutback",
        "mx_missile",
        "adoption_of_the_budget_resolution",
        "anti_satellite_test_ban",
    ],
    "breast_cancer_ljubljana": ["node_caps", "deg_malig"],
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_trees_match_published_trees(name):
    X, y = read(name)
    model = C45Classifier().fit(X, y)
    tree = model.tree_
    leaves = [node for node in range(tree.node_count) if tree.is_leaf(node)]
    leaf_weights = [(tree.weight[n], tree.weight[n] - tree.counts[n].max()) for n in leaves]
    np.testing.assert_allclose(leaf_weights, PUBLISHED[name], atol=0.0051)
    split_columns = [str(model.feature_names_in_[f]) for f in tree.feature if f >= 0]
    assert split_columns == SPLIT_COLUMNS[name]


def test_thresholds_match_the_published_tree():
    model = C45Classifier().fit(*read("labor"))
    assert model.tree_.threshold[model.tree_.feature >= 0].tolist() == [2.5, 10.0]


@pytest.mark.parametrize(("name", "least"), [("votes", 0.95), ("labor", 0.7)])
def test_accuracy_matches_the_literature(name, least):
    X, y = read(name)
    scores = cross_val_score(C45Classifier(), X, y, cv=10)
    assert scores.mean() > least


# ---------------------------------------------------------------------------------- error bounds


@settings(max_examples=100, deadline=None)
@given(n=st.integers(1, 500), share=st.floats(0, 1), confidence=st.floats(0.1, 0.5))
def test_expected_errors_are_a_binomial_confidence_limit(n, share, confidence):
    e = int(share * n)
    limit = _core.extra_errors(n, e, confidence) + e
    if e == 0:
        np.testing.assert_allclose(limit, n * (1 - confidence ** (1 / n)), rtol=1e-9)
    elif e == n:
        assert limit == n
    elif e + 0.5 < n:
        exact = n * beta.ppf(1 - confidence, e + 1, n - e)  # Clopper and Pearson
        assert abs(limit - exact) < 0.25  # in rows; at most 0.2 for n <= 500
        z, f = norm.isf(confidence), (e + 0.5) / n  # p is a root of this quadratic
        p = (limit) / n
        np.testing.assert_allclose((p - f) ** 2 * n, z * z * p * (1 - p), rtol=1e-6, atol=1e-9)
        assert p >= f - 1e-12


# ---------------------------------------------------------------------- reference implementation


def weighted_entropy(counts):
    total = sum(counts)
    return sum(-c * math.log2(c / total) for c in counts if c > 0)


def class_counts(items, labels):
    counts = Counter()
    for i, w in items:
        counts[labels[i]] += w
    return counts


def rounded(count):
    """Round to 6 digits; exact halves, which sums of weights can be, always round up."""
    return round(count + 1e-9, 6)


class SlowC45:
    """C4.5 as in Quinlan's book, with dictionaries, lists and recursion."""

    def __init__(self, columns, labels, weights, **options):
        self.columns, self.labels, self.options = columns, labels, options
        items = [(i, w) for i, w in enumerate(weights) if w > 0]
        self.n = sum(w for _, w in items)
        self.root = self.grow(items, frozenset())
        if options["collapse"]:
            self.collapse(self.root)
        if options["confidence"] is not None:
            self.root = self.prune(self.root, items)

    def branches(self, split, items):
        kind, f, value_or_values = split
        parts = {key: [] for key in ((0, 1) if kind == "number" else value_or_values)}
        missing = []
        for i, w in items:
            value = self.columns[f][i]
            if value is None:
                missing.append((i, w))
            elif kind == "number":
                parts[0 if value <= value_or_values else 1].append((i, w))
            else:
                parts[value].append((i, w))
        known = {key: sum(w for _, w in part) for key, part in parts.items()}
        total = sum(known.values())
        for key, part in parts.items():
            if known[key] > 0:
                part += [(i, w * known[key] / total) for i, w in missing]
        return parts

    def split(self, f, items):
        """Return gain, split information and best split of a column, or None."""
        column, least = self.columns[f], self.options["min_samples_branch"]
        total = sum(w for _, w in items)
        known = [(column[i], self.labels[i], w) for i, w in items if column[i] is not None]
        n_known = sum(w for *_, w in known)
        base = weighted_entropy(
            class_counts([(i, w) for i, w in items if column[i] is not None], self.labels).values()
        )

        def measure(groups):
            inside = sum(weighted_entropy(group.values()) for group in groups)
            sizes = [sum(group.values()) for group in groups] + [total - n_known]
            return (base - inside) / total, weighted_entropy([max(s, 0) for s in sizes]) / total

        if isinstance(next(iter(v for v in column if v is not None), ""), str):
            groups = {}
            for value, label, w in known:
                groups.setdefault(value, Counter())[label] += w
            if sum(sum(g.values()) >= least - 1e-9 for g in groups.values()) < 2:
                return None
            values = sorted({v for v in column if v is not None})
            return (*measure(list(groups.values())), ("category", f, values))
        if n_known < 2 * least - 1e-9:
            return None
        margin = min(max(0.1 * n_known / self.n_classes, least), max(25, least))
        values = sorted({value for value, *_ in known})
        best, n_tries = None, 0
        for low, high in pairwise(values):
            below, above = Counter(), Counter()
            for value, label, w in known:
                (below if value <= low else above)[label] += w
            if min(sum(below.values()), sum(above.values())) < margin - 1e-9:
                continue
            n_tries += 1
            gain, info = measure([below, above])
            if best is None or gain > best[0] + 1e-12:
                cut = max(v for v in column if v is not None and v <= (low + high) / 2)
                best = (gain, info, ("number", f, cut))
        if best is None:
            return None
        gain = best[0] - (math.log2(n_tries) / total if self.options["threshold_cost"] else 0)
        return (gain, *best[1:]) if gain > 0 else None

    @property
    def n_classes(self):
        return len(set(self.labels))

    def grow(self, items, used):
        counts = class_counts(items, self.labels)
        node = {"items": items, "counts": counts, "split": None}
        total = sum(w for _, w in items)
        if total < 2 * self.options["min_samples_branch"] or len(items) < 2:
            return node
        if max(counts.values()) >= total * (1 - 1e-9):
            return node
        splits = [self.split(f, items) for f in range(len(self.columns)) if f not in used]
        splits = [s for s in splits if s is not None]
        if not splits:
            return node
        gains_of_few_values = [
            s[0]
            for s in splits
            if s[2][0] == "number" or len(s[2][2]) < 0.3 * self.n or self.all_have_many()
        ]
        average = sum(gains_of_few_values) / len(gains_of_few_values) if gains_of_few_values else 0
        best = None
        for gain, info, split in splits:
            if gain >= average - 1e-3 and info > 1e-3 and gain / info > (best or (0,))[0] + 1e-12:
                best = (gain / info, split)
        if best is None:
            return node
        split = node["split"] = best[1]
        used_below = used | {split[1]} if split[0] == "category" else used
        node["children"] = {
            key: self.grow(part, used_below)
            if part
            else {"items": [], "counts": Counter(), "split": None}
            for key, part in self.branches(split, items).items()
        }
        return node

    def all_have_many(self):
        return all(
            isinstance(next(iter(v for v in c if v is not None), 0), str)
            and len({v for v in c if v is not None}) >= 0.3 * self.n
            for c in self.columns
        )

    def mistakes(self, counts):
        return sum(counts.values()) - max(counts.values(), default=0)

    def collapse(self, node):
        if node["split"] is None:
            return self.mistakes(node["counts"])
        below = sum(self.collapse(child) for child in node["children"].values())
        if below >= self.mistakes(node["counts"]) - 1e-3:
            node["split"] = None
            return self.mistakes(node["counts"])
        return below

    def expected(self, items):
        counts = class_counts(items, self.labels)
        n, e = sum(counts.values()), self.mistakes(counts)
        return e + _core.extra_errors(n, e, self.options["confidence"])

    def estimate(self, node, items):
        if not items:
            return 0
        if node["split"] is None:
            return self.expected(items)
        parts = self.branches(node["split"], items)
        return sum(self.estimate(node["children"][key], part) for key, part in parts.items())

    def prune(self, node, items):
        node = {**node, "items": items, "counts": class_counts(items, self.labels)}
        if node["split"] is None or not items:
            return {**node, "split": None}
        parts = self.branches(node["split"], items)
        children = node["children"] = {
            key: self.prune(child, parts[key]) for key, child in node["children"].items()
        }
        known = {
            key: sum(w for i, w in part if self.columns[node["split"][1]][i] is not None)
            for key, part in parts.items()
        }
        largest = max(known, key=lambda key: known[key])
        as_leaf, as_tree = self.expected(items), self.estimate(node, items)
        raises = self.options["subtree_raising"] and children[largest]["split"] is not None
        as_branch = self.estimate(children[largest], items) if raises else as_leaf
        if as_leaf <= as_tree + 0.1 and as_leaf <= as_branch + 0.1:
            return {**node, "split": None}
        if raises and as_branch <= as_tree + 0.1:
            return self.prune(children[largest], items)
        return node

    def as_tuples(self, node=None):
        """Return the tree as nested tuples of splits and rounded leaf weights."""
        node = self.root if node is None else node
        if node["split"] is None:
            return tuple(sorted((k, rounded(v)) for k, v in node["counts"].items() if v > 1e-9))
        kind, f, threshold = node["split"]
        return (
            f,
            threshold if kind == "number" else None,
            tuple(self.as_tuples(child) for child in node["children"].values()),
        )


def as_tuples(model, node=0):
    tree = model.tree_
    if tree.is_leaf(node):
        counts = zip(model.classes_.tolist(), tree.counts[node].tolist(), strict=True)
        return tuple((k, rounded(v)) for k, v in counts if v > 1e-9)
    threshold = None if tree.is_categorical(node) else float(tree.threshold[node])
    children = tuple(as_tuples(model, int(child)) for child in tree.children_of(node))
    return (int(tree.feature[node]), threshold, children)


@examples(40)
@given(
    seed=st.integers(0, 10**6),
    kinds=st.lists(
        st.sampled_from(["numbers", "few", "categories", "many"]), min_size=1, max_size=4
    ),
    missing_share=st.sampled_from([0.0, 0.2]),
    weighted=st.booleans(),
    options=st.fixed_dictionaries(
        {
            "confidence": st.sampled_from([None, 0.1, 0.25, 0.5]),
            "min_samples_branch": st.sampled_from([1, 2, 5]),
            "collapse": st.booleans(),
            "subtree_raising": st.booleans(),
            "threshold_cost": st.booleans(),
        }
    ),
)
def test_c45_matches_the_reference(seed, kinds, missing_share, weighted, options):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 90))
    columns = []
    for kind in kinds:
        column = {
            "numbers": lambda: rng.normal(size=n).round(2).tolist(),
            "few": lambda: rng.integers(0, 6, n).astype(float).tolist(),
            "categories": lambda: rng.choice(list("abc"), n).tolist(),
            "many": lambda: [f"v{k:02d}" for k in rng.integers(0, 30, n)],
        }[kind]()
        columns.append([None if rng.random() < missing_share else value for value in column])
        if all(value is None for value in columns[-1]):
            columns[-1][0] = column[0]
    y = rng.integers(0, 3, n)
    signal = [
        0 if v is None else (v if isinstance(v, float) else ord(v[-1]) % 3) for v in columns[0]
    ]
    y = np.where(rng.random(n) < 0.6, np.asarray(signal).astype(int) % 3, y)
    weights = rng.integers(0, 4, n).astype(float) if weighted else np.ones(n)
    weights[0] = 1
    frame = pd.DataFrame({f"x{i}": column for i, column in enumerate(columns)})
    for i, kind in enumerate(kinds):
        if kind in ("categories", "many"):
            frame[f"x{i}"] = frame[f"x{i}"].astype("category")
        else:
            frame[f"x{i}"] = frame[f"x{i}"].astype(float)
    if weighted:  # the tree ignores values that only rows of weight zero have
        keep = weights > 0
        model = C45Classifier(**options).fit(frame[keep], y[keep], weights[keep])
        columns = [[v for v, k in zip(c, keep, strict=True) if k] for c in columns]
        y, weights, frame = y[keep], weights[keep], frame[keep]
        if any(all(v is None for v in c) for c in columns):
            return
    else:
        model = C45Classifier(**options).fit(frame, y)
    reference = SlowC45(columns, y.tolist(), weights.tolist(), **options)
    assert as_tuples(model) == reference.as_tuples()


def slow_probabilities(model, row, node=0):
    """Return the class probabilities of a row by recursion."""
    tree = model.tree_
    if tree.is_leaf(node):
        return tree.fractions[node]
    value = row[int(tree.feature[node])]
    children = tree.children_of(node)
    if value is not None and value == value:
        if not tree.is_categorical(node):
            return slow_probabilities(model, row, children[int(value > tree.threshold[node])])
        categories = model.categories_[int(tree.feature[node])].tolist()
        if value in categories:
            codes = tree.codes_of_branches(node)
            branch = next((b for b, c in enumerate(codes) if categories.index(value) in c), None)
            if branch is not None:
                return slow_probabilities(model, row, children[branch])
    shares = tree.shares[tree.child_start[node] : tree.child_start[node + 1]]
    weighted_children = zip(shares, children, strict=True)
    return sum(
        share * slow_probabilities(model, row, child) for share, child in weighted_children if share
    )


@pytest.mark.parametrize("group", [False, True])
def test_missing_values_follow_all_branches(group):
    X, y = read("votes")
    model = C45Classifier(confidence=None, group_categories=group, min_samples_branch=1).fit(X, y)
    rows = X.astype(object).where(X.notna(), None)
    rows.iloc[0, 3] = "never seen"
    probabilities = model.predict_proba(rows)
    for i in range(0, len(rows), 20):
        np.testing.assert_allclose(
            probabilities[i], slow_probabilities(model, rows.iloc[i].tolist())
        )
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_group_categories_merges_branches():
    rng = np.random.default_rng(0)
    categories = rng.choice(list("abcdef"), 300)
    y = np.isin(categories, ["a", "c", "e"])
    frame = pd.DataFrame({"word": categories})
    model = C45Classifier(group_categories=True).fit(frame, y)
    assert export_text(model).split("\n")[::2] == [
        "|--- word in {a, c, e}",
        "|--- word in {b, d, f}",
        "",
    ]
    assert C45Classifier().fit(frame, y).get_n_leaves() == 6
    assert model.predict(pd.DataFrame({"word": ["a", "z"]}))[0]


def test_c45_is_smaller_than_cart_at_equal_error():
    X, y = load_breast_cancer(return_X_y=True)
    c45, cart = C45Classifier(), DecisionTreeClassifier(random_state=0)
    error = cross_val_score(c45, X, y, cv=10).mean()
    assert error > cross_val_score(cart, X, y, cv=10).mean() - 0.01
    assert 1.5 * c45.fit(X, y).get_n_leaves() < cart.fit(X, y).get_n_leaves()


def test_integer_weights_equal_repeated_rows():
    X, y = read("labor")
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    has_weight = weights > 0
    weighted = C45Classifier().fit(X[has_weight], y[has_weight], weights[has_weight])
    rows = np.repeat(np.arange(len(y)), weights)
    repeated = C45Classifier().fit(X.iloc[rows], y.iloc[rows])
    assert as_tuples(weighted) == as_tuples(repeated)


@pytest.mark.parametrize("kind", [C45Classifier, C45Rules])
def test_result_does_not_depend_on_the_number_of_threads(kind):
    X, y = load_breast_cancer(return_X_y=True)
    single_thread, two_threads = kind(n_jobs=1).fit(X, y), kind(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(single_thread.predict_proba(X), two_threads.predict_proba(X))
    unpickled = pickle.loads(pickle.dumps(two_threads))
    np.testing.assert_array_equal(unpickled.predict_proba(X), two_threads.predict_proba(X))


def test_very_deep_trees_do_not_overflow_the_stack():
    n = 4000
    x = np.arange(n, dtype=float)
    y = np.arange(n) // 2 % 2
    model = C45Classifier(confidence=None, threshold_cost=False, min_samples_branch=1)
    model.fit(x[:, None], y)
    assert 0.5 <= model.score(x[:, None], y) <= 1
    C45Classifier(threshold_cost=False, min_samples_branch=1).fit(x[:, None], y)


# ------------------------------------------------------------------------------------------- ID3


def slow_id3(columns, labels, rows, used):
    """Grow ID3 as in the paper, as nested tuples; missing is the last category."""
    counts = Counter(labels[i] for i in rows)
    leaf = tuple(sorted((k, float(v)) for k, v in counts.items()))
    best = None
    for f in range(len(columns)):
        parts = {}
        for i in rows:
            parts.setdefault(columns[f][i], []).append(i)
        if f in used or len(parts) < 2 or len(counts) < 2:
            continue
        remaining = sum(
            weighted_entropy(Counter(labels[i] for i in part).values()) for part in parts.values()
        )
        gain = (weighted_entropy(counts.values()) - remaining) / len(rows)
        if best is None or gain > best[0] + 1e-12:
            best = (gain, f, parts)
    if best is None:
        return leaf
    _, f, parts = best
    known = sorted({v for v in columns[f] if v is not None})
    values = [*known, *([None] if None in columns[f] else [])]
    children = [
        slow_id3(columns, labels, parts[v], used | {f}) if v in parts else () for v in values
    ]
    return (f, None, tuple(children))


@examples(25)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 60),
    n_columns=st.integers(1, 4),
    n_values=st.integers(1, 5),
    missing_share=st.sampled_from([0.0, 0.2]),
)
def test_id3_matches_the_reference(seed, n, n_columns, n_values, missing_share):
    rng = np.random.default_rng(seed)
    columns = [
        [None if rng.random() < missing_share else str(v) for v in rng.integers(0, n_values, n)]
        for _ in range(n_columns)
    ]
    for column in columns:
        column[0] = "0"
    y = rng.integers(0, 3, n).tolist()
    frame = pd.DataFrame({f"x{i}": pd.Categorical(column) for i, column in enumerate(columns)})
    model = ID3Classifier().fit(frame, y)
    assert as_tuples(model) == slow_id3(columns, y, range(n), frozenset())


def test_id3_splits_once_on_each_feature_of_a_path():
    X, y = read("votes")
    model = ID3Classifier().fit(X, y)
    tree = model.tree_

    def walk(node, used):
        if tree.is_leaf(node):
            return
        feature = int(tree.feature[node])
        assert feature not in used
        for child in tree.children_of(node):
            walk(int(child), used | {feature})

    walk(0, frozenset())
    assert model.score(X, y) == 1


def test_empty_branches_predict_as_their_parent():
    frame = pd.DataFrame({"a": ["x", "x", "y", "y", "z"], "b": ["p", "q", "p", "p", "q"]})
    y = [0, 1, 0, 0, 1]
    model = ID3Classifier().fit(frame, y)
    # The root splits on b, and no training row has both q and y.
    rows = pd.DataFrame({"a": ["y", "?"], "b": ["q", "?"]})
    # For an unseen category, the node that splits on it predicts.
    np.testing.assert_allclose(model.predict_proba(rows), [[0, 1], [0.6, 0.4]])


def test_id3_treats_missing_as_a_category():
    frame = pd.DataFrame({"a": ["x", None, "x", None, "y", "y"]})
    y = [0, 1, 0, 1, 0, 0]
    model = ID3Classifier().fit(frame, y)
    assert model.predict(frame).tolist() == y
    assert "a = missing" in export_text(model)
    assert [rule.covers(["x"]) for rule in export_rules(model)].count(True) == 1


def test_id3_learns_parity():
    a, b = np.indices((2, 2)).reshape(2, -1)
    frame = pd.DataFrame({"a": a.astype(str), "b": b.astype(str)})
    assert ID3Classifier().fit(frame, a ^ b).score(frame, a ^ b) == 1
    assert ID3Classifier(min_gain=0.01).fit(frame, a ^ b).get_n_leaves() == 1


def test_id3_requires_a_discretizer_of_numeric_columns():
    X, y = load_iris(return_X_y=True, as_frame=True)
    with pytest.raises(ValueError, match=r"column 'sepal length \(cm\)'.*discretizer"):
        ID3Classifier().fit(X, y)
    model = ID3Classifier(discretizer=4).fit(X, y)
    assert model.score(X, y) > 0.95
    assert all(len(values) <= 4 for values in model.categories_)
    assert "petal" in export_text(model)
    bins = KBinsDiscretizer(5, encode="ordinal", strategy="uniform")
    assert ID3Classifier(discretizer=bins).fit(X, y).score(X, y) > 0.95
    one_hot = KBinsDiscretizer(5, encode="onehot-dense", strategy="uniform")
    with pytest.raises(ValueError, match="discretizer: expected one column for each"):
        ID3Classifier(discretizer=one_hot).fit(X, y)
    as_categories = X.astype(int)
    model = ID3Classifier(categorical_features=[0, 1, 2, 3]).fit(as_categories, y)
    assert model.score(as_categories, y) > 0.9


def test_discretizer_bins_are_labelled():
    x = np.repeat([1.0, 2.0, 3.0, 4.0], 5)[:, None]
    model = ID3Classifier(discretizer=4).fit(x, x.ravel().astype(int))
    assert model.categories_[0].tolist() == ["<= 1", "1 to 2", "2 to 3", "> 3"]
    assert model.score(x, x.ravel().astype(int)) == 1
    assert model.predict([[2.5], [99.0]]).tolist() == [3, 4]


# ----------------------------------------------------------------------------------------- rules


def test_first_matching_rule_predicts():
    X, y = read("votes")
    model = C45Rules().fit(X, y)
    applied = model.apply(X)
    predicted = model.predict(X)
    records = X.astype(object).where(X.notna(), None).to_dict("records")
    for i, record in enumerate(records):
        first = next((r for r, rule in enumerate(model.rules_) if rule.covers(record)), None)
        assert applied[i] == (len(model.rules_) if first is None else first)
        expected = model.default_class_ if first is None else model.rules_[first].prediction
        assert predicted[i] == expected
    assert [rule.n_samples for rule in model.rules_] == [
        int((applied == r).sum()) for r in range(len(model.rules_))
    ]
    assert model.score(X, y) > 0.95
    assert len(model.rules_) < model.estimator_.get_n_leaves()
    assert model.to_text().count("\n") == len(model.rules_)


def expected_error_rate(n, e):
    return (e + _core.extra_errors(n, e, 0.25)) / n if n else 1.0


def test_dropping_a_condition_increases_the_expected_error():
    X, y = load_iris(return_X_y=True)
    model = C45Rules().fit(X, y)
    for rule in model._candidates:
        conditions = [(X[:, t.feature] > t.low) & (X[:, t.feature] <= t.high) for t in rule.tests]
        covered = np.all(conditions, axis=0)
        error = expected_error_rate(covered.sum(), (covered & (y != rule.label)).sum())
        for dropped in range(len(conditions)):
            other_conditions = [c for i, c in enumerate(conditions) if i != dropped]
            covered_without = (
                np.all(other_conditions, axis=0)
                if other_conditions
                else np.ones(len(y), dtype=bool)
            )
            assert (
                expected_error_rate(
                    covered_without.sum(), (covered_without & (y != rule.label)).sum()
                )
                > error
            )


def test_true_rules_are_recovered():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (600, 5)).astype(float)
    y = np.where((X[:, 0] == 1) & (X[:, 3] == 2), "both", np.where(X[:, 1] == 0, "none", "rest"))
    model = C45Rules(categorical_features=range(5)).fit(X, y)
    rule_texts = {str(rule).split(" (")[0] for rule in model.rules_}
    assert "IF x[0] in {1} AND x[3] in {2} THEN both" in rule_texts or (
        "IF x[3] in {2} AND x[0] in {1} THEN both" in rule_texts
    )
    assert model.score(X, y) == 1


# --------------------------------------------------------------------------------------- exports


def test_exports():
    X, y = read("labor")
    model = C45Classifier(confidence=None).fit(X, y)
    svg = export_svg(model)
    assert svg.startswith("<svg")
    assert "wage_increase_first_year" in svg
    assert svg.count("<rect") > model.tree_.node_count
    rules = export_rules(model)
    assert len(rules) == model.get_n_leaves()
    complete_rows = X.dropna(
        axis=1, how="any"
    ).index  # rules are exact for rows without missing values
    complete = X.fillna({c: X[c].mode()[0] for c in X}).loc[complete_rows]
    predicted = model.predict(complete)
    for record, prediction in zip(complete.to_dict("records"), predicted, strict=True):
        (rule,) = [rule for rule in rules if rule.covers(record)]
        assert rule.prediction == prediction
    assert "truncated" in export_text(model, max_depth=0)
    for writer in (export_graphviz, plot_tree):
        with pytest.raises(TypeError, match="expected a tree whose nodes split on one column each"):
            writer(model)
    assert "<svg" in model._repr_html_()


# --------------------------------------------------------------------------------- invalid input


@pytest.mark.parametrize("kind", [C45Classifier, ID3Classifier, C45Rules])
def test_invalid_input_raises(kind):
    X, y = load_play_tennis(return_X_y=True, as_frame=True)
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero"):
        kind().fit(X, y, np.zeros(14))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        kind().fit(X, y, -np.ones(14))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        kind().fit(X, y[:5])
    model = kind().fit(X, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["outlook"]])
    assert clone(model).get_params() == model.get_params()


def test_invalid_parameters_raise():
    X, y = load_iris(return_X_y=True)
    for parameters in ({"confidence": 0.0}, {"min_samples_branch": 0}, {"max_depth": 0}):
        with pytest.raises(ValueError, match=next(iter(parameters))):
            C45Classifier(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="min_gain"):
        ID3Classifier(min_gain=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        C45Classifier().fit(np.where(X > 5, np.inf, X), y)


def test_degenerate_data():
    assert C45Classifier().fit([[1.0]], [3]).predict([[5.0]]).tolist() == [3]
    assert C45Rules().fit([[1.0], [2.0]], [3, 3]).predict([[5.0]]).tolist() == [3]
    constant = C45Classifier().fit(np.ones((10, 2)), np.arange(10) % 2)
    assert constant.get_n_leaves() == 1
    huge = np.array([[1e308], [-1e308], [1e308], [-1e308]])
    model = C45Classifier(min_samples_branch=1).fit(huge, [0, 1, 0, 1])
    assert model.predict(huge).tolist() == [0, 1, 0, 1]
    all_missing = C45Classifier().fit([[np.nan], [np.nan]], [0, 1])
    assert all_missing.get_n_leaves() == 1
    search = GridSearchCV(C45Classifier(), {"confidence": [0.1, 0.5, None]}, cv=3)
    assert search.fit(*load_iris(return_X_y=True)).best_score_ > 0.9
