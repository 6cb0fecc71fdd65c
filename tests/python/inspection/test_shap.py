"""Shapley values against their definition, against themselves, and bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import spinney
from reference.slow_shap import (
    background_worth,
    leaf_value,
    shapley_interactions,
    shapley_values,
    tree_worth,
)
from spinney.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    AnyBoostClassifier,
    AnyBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.inspection import Explanation, explain, shap_interaction_values, shap_values
from spinney.inspection.shap.trees import _usual_cover, read_sum
from spinney.linear_model import LinearRegression, LogisticRegression, Ridge
from spinney.mixture import GaussianMixture
from spinney.neighbors import KNeighborsClassifier, KNeighborsRegressor
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor


def mixed_table(seed, n=60, missing=True):
    """Numbers, whole numbers, categories and gaps; five columns of which one repeats another."""
    random = np.random.default_rng(seed)
    a = random.normal(size=n)
    table = pd.DataFrame(
        {
            "number": a,
            "few": random.integers(0, 4, n).astype(float),
            "word": pd.Categorical(random.choice(list("uvwxyz"), n)),
            "noise": random.normal(size=n),
            "like": a + 0.3 * random.normal(size=n),
        }
    )
    if missing:
        table.loc[random.random(n) < 0.2, "number"] = np.nan
        table.loc[random.random(n) < 0.2, "word"] = None
    y = np.nan_to_num(a) * (table["few"] > 1) + table["word"].cat.codes * 0.3
    return table, y.to_numpy() + 0.1 * random.normal(size=n)


def codes_of(model, table):
    """The rows as the trees see them: floats, categories as codes, NaN where missing."""
    out = np.empty(table.shape)
    for j, categories in enumerate(model._schema.categories):
        column = table.iloc[:, j]
        if categories is None:
            out[:, j] = column.astype(float)
        else:
            place = {value: code for code, value in enumerate(categories)}
            out[:, j] = [place.get(value, np.nan) for value in column]
    return out


def slow(model, table, background=None, interactions=False):
    told = read_sum(model)
    scores = told.scores
    reader = model if told.reader is None else told.reader
    rows = codes_of(reader, table)
    others = None if background is None else codes_of(reader, background)
    cover_of = _usual_cover(model)
    n_outputs = len(scores.start)
    calculate = shapley_interactions if interactions else shapley_values
    out = []
    for row in rows:

        def worth(known, row=row):
            total = np.array(scores.start, dtype=float)
            for tree, values, place in zip(
                scores.trees, scores.values, scores.adds_to, strict=True
            ):
                cover = tree.n_node_samples if cover_of == "rows" else tree.weighted_n_node_samples
                if others is None:
                    game = tree_worth(tree, values, cover, row)
                else:
                    game = background_worth(
                        lambda x, t=tree, v=values: leaf_value(t, v, x), row, others
                    )
                part = np.zeros(n_outputs)
                if place is None:
                    part += game(known)
                else:
                    part[place] += game(known)[0]
                total += part
            return total

        out.append(calculate(worth, rows.shape[1]))
    values = np.array([v for v, _ in out]) * told.factor
    base = out[0][1] * told.factor
    return (values[..., 0], base[0]) if n_outputs == 1 else (values, base)


def models(seed, y):
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    two = np.where(y > np.median(y), "yes", "no")
    yield DecisionTreeRegressor(max_depth=7, random_state=seed), y
    yield DecisionTreeClassifier(random_state=seed), labels
    yield RandomForestClassifier(3, random_state=seed), two
    yield RandomForestRegressor(3, random_state=seed), np.column_stack([y, -2 * y])
    yield ExtraTreesClassifier(2, random_state=seed), labels
    yield BaggingRegressor(DecisionTreeRegressor(), 2, max_features=0.7, random_state=seed), y
    yield (
        GradientBoostingClassifier(n_estimators=3, random_state=seed, validation_fraction=None),
        two,
    )
    yield GradientBoostingClassifier(n_estimators=2, random_state=seed), labels
    yield GradientBoostingRegressor(n_estimators=3, growth="oblivious", random_state=seed), y
    yield AdaBoostClassifier(n_estimators=3, random_state=seed), two
    yield IsolationForest(n_estimators=3, max_samples=20, random_state=seed), None
    yield AnyBoostRegressor(n_estimators=3, random_state=seed), y
    yield AnyBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3), two


N_MODELS = sum(1 for _ in models(0, np.arange(60.0)))


# ------------------------------------------------------------------ by the definition


@pytest.mark.parametrize("number", range(N_MODELS))
def test_values_are_those_of_all_coalitions(number):
    table, y = mixed_table(number)
    model, target = list(models(number, y))[number]
    model.fit(table, target)
    few = table.iloc[:3]
    values, base = slow(model, few)
    told = explain(model, few)
    assert np.allclose(told.values, values, atol=1e-11)
    assert np.allclose(told.base_values, base, atol=1e-11)
    # Many rows are looked up in tables, few walk down the trees.
    repeated = pd.concat([few] * 400, ignore_index=True)
    assert np.allclose(shap_values(model, repeated)[-3:], values, atol=1e-11)


@pytest.mark.parametrize("number", range(N_MODELS))
def test_values_against_a_background_are_those_of_all_coalitions(number):
    table, y = mixed_table(number + 50)
    model, target = list(models(number, y))[number]
    model.fit(table, target)
    few, background = table.iloc[:2], table.iloc[30:36]
    values, base = slow(model, few, background)
    told = explain(model, few, background)
    assert np.allclose(told.values, values, atol=1e-11)
    assert np.allclose(told.base_values, base, atol=1e-11)
    repeated = pd.concat([few] * 400, ignore_index=True)
    assert np.allclose(shap_values(model, repeated, background)[-2:], values, atol=1e-11)


@pytest.mark.parametrize("number", [0, 1, 3, 7])
@pytest.mark.parametrize("with_background", [False, True])
def test_interactions_are_those_of_all_coalitions(number, with_background):
    table, y = mixed_table(number + 9)
    model, target = list(models(number, y))[number]
    model.fit(table, target)
    few = table.iloc[:2]
    background = table.iloc[30:35] if with_background else None
    values, _ = slow(model, few, background, interactions=True)
    assert np.allclose(shap_interaction_values(model, few, background), values, atol=1e-11)
    repeated = pd.concat([few] * 400, ignore_index=True)
    pairs = shap_interaction_values(model, repeated, background)
    assert np.allclose(pairs[-2:], values, atol=1e-11)


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 40), st.booleans(), st.booleans())
def test_any_tree_adds_up_and_is_symmetric(seed, depth, n_rows, with_background, missing):
    table, y = mixed_table(seed, 50, missing)
    tree = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(table, y)
    rows = table.iloc[:n_rows]
    background = table.iloc[20:27] if with_background else None
    told = explain(tree, rows, background)
    assert np.allclose(told.base_values + told.values.sum(axis=1), tree.predict(rows), atol=1e-10)
    pairs = shap_interaction_values(tree, rows, background)
    assert np.allclose(pairs.sum(axis=2), told.values, atol=1e-10)
    assert np.array_equal(pairs, pairs.swapaxes(1, 2))
    unused = np.setdiff1d(np.arange(5), tree.tree_.feature)
    assert not told.values[:, unused].any()


def test_equal_columns_get_equal_parts():
    random = np.random.default_rng(0)
    X = random.integers(0, 2, (200, 3)).astype(float)
    tree = DecisionTreeRegressor().fit(X, X[:, 0] + X[:, 1] + 5 * X[:, 0] * X[:, 1])
    full = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], dtype=float)
    values = shap_values(tree, np.array([[1.0, 1.0, 0.0]]), full)
    assert values[0, 0] == pytest.approx(values[0, 1], abs=1e-12)
    assert values[0, 2] == 0


@pytest.mark.parametrize("leaves", [8, 64])
def test_deep_paths_and_many_rows(leaves):
    """Paths of many columns take the walk; few of them must give what many do."""
    random = np.random.default_rng(1)
    X = random.normal(size=(3000, 18))
    y = (X * np.arange(18)).sum(axis=1) + X[:, 0] * X[:, 5]
    model = GradientBoostingRegressor(
        n_estimators=5, max_leaf_nodes=leaves, max_depth=None, random_state=0
    ).fit(X, y)
    deep = DecisionTreeRegressor(max_depth=14, min_samples_leaf=5, splitter="random").fit(X, y)
    for each in (model, deep):
        many = explain(each, X)
        total = many.base_values + many.values.sum(axis=1)
        assert np.allclose(total, each.predict(X), rtol=1e-10, atol=1e-8)
        assert np.allclose(shap_values(each, X[:40]), many.values[:40], rtol=1e-9, atol=1e-9)
        one = shap_values(each, X, n_jobs=1)
        assert np.array_equal(one, shap_values(each, X, n_jobs=3))


def test_tables_that_would_be_too_large_are_not_made():
    """Many outputs and long paths: some leaves are walked to, and nothing changes by it."""
    random = np.random.default_rng(4)
    X = random.normal(size=(1500, 12))
    labels = (X[:, :4] > 0) @ [1, 2, 4, 8]
    tree = DecisionTreeClassifier(splitter="random", random_state=0).fit(X, labels)
    rows, background = X[:200], X[::75]
    told = explain(tree, rows, background)
    total = told.base_values + told.values.sum(axis=1)
    assert np.allclose(total, tree.predict_proba(rows), atol=1e-10)
    assert np.allclose(told.values[:2], shap_values(tree, rows[:2], background), atol=1e-12)


def test_deep_paths_against_a_background():
    random = np.random.default_rng(2)
    X = random.normal(size=(800, 16))
    deep = DecisionTreeRegressor(max_depth=16, splitter="random", random_state=0)
    deep.fit(X, X.sum(axis=1))
    told = explain(deep, X[:30], X[100:120])
    assert np.allclose(told.base_values + told.values.sum(axis=1), deep.predict(X[:30]))
    pairs = shap_interaction_values(deep, X[:30], X[100:120])
    assert np.allclose(pairs.sum(axis=2), told.values, atol=1e-10)


# ------------------------------------------------------------------ outputs and models


def test_what_is_explained_is_said_and_adds_up():
    X, y = load_iris(return_X_y=True)
    two = y[:100]
    cases = [
        (GradientBoostingClassifier(n_estimators=9), X[:100], two, "log-odds of 1"),
        (HistGradientBoostingClassifier(max_iter=9), X, y, "score before softmax"),
        (RandomForestClassifier(9, random_state=0), X, y, "probability"),
        (RandomForestClassifier(9, voting="hard", random_state=0), X, y, "probability"),
        (BaggingClassifier(DecisionTreeClassifier(), 4, random_state=0), X, y, "probability"),
        (GradientBoostingRegressor(loss="poisson", n_estimators=9), X, y, "logarithm of the pred"),
        (IsolationForest(n_estimators=9, random_state=0), X, None, "mean length of the path"),
    ]
    for model, rows, target, output in cases:
        model.fit(rows, target)
        told = explain(model, rows)
        assert told.output.startswith(output)
        total = told.base_values + told.values.sum(axis=1)
        if output == "probability":
            wanted = model.predict_proba(rows)
        elif output.startswith("logarithm"):
            wanted = np.log(model.predict(rows))
        elif output.startswith("mean length"):
            usual = -np.log2(-model.score_samples(rows))
            wanted = usual * total.mean() / usual.mean()  # the same up to a factor
        else:
            wanted = model.decision_function(rows)
        assert np.allclose(total, wanted, atol=1e-9)


def test_any_boost_of_trees_adds_up():
    table, y = mixed_table(3)
    two = np.where(y > np.median(y), "yes", "no")
    weights = np.random.default_rng(0).uniform(size=len(y))
    for learner in (None, DecisionTreeClassifier(max_depth=1)):
        model = AnyBoostClassifier(learner, n_estimators=8, random_state=0)
        told = explain(model.fit(table, two, sample_weight=weights), table)
        assert told.output == "score of yes"
        assert told.method == "trees, path dependent, by weight"
        total = told.base_values + told.values.sum(axis=1)
        assert np.allclose(total, model.decision_function(table), atol=1e-11)
        pairs = shap_interaction_values(model, table, table[:10])
        assert np.allclose(pairs.sum(axis=2), shap_values(model, table, table[:10]), atol=1e-11)
    numbers = table[["few", "noise"]]
    lines = AnyBoostRegressor(LinearRegression(), n_estimators=2).fit(numbers, y)
    assert explain(lines, numbers, numbers[:5]).method.startswith("sampling")
    with pytest.raises(TypeError, match="its learners are LinearRegression"):
        shap_values(lines, numbers, method="tree")


def test_a_median_of_trees_is_refused_by_name_and_sampled():
    X, y = load_diabetes(return_X_y=True)
    model = AdaBoostRegressor(n_estimators=4, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="AdaBoostRegressor predicts a median"):
        shap_values(model, X[:2], method="tree")
    told = explain(model, X[:2], X[:20])
    assert told.method.startswith("sampling")
    assert np.allclose(told.base_values + told.values.sum(axis=1), model.predict(X[:2]))


def test_linear_models_have_a_closed_form():
    X, y = load_diabetes(return_X_y=True)
    for model in (LinearRegression(), Ridge(0.1)):
        model.fit(X, y)
        told = explain(model, X[:9], X)
        assert np.allclose(told.values, model.coef_ * (X[:9] - X.mean(axis=0)))
        assert np.allclose(told.base_values + told.values.sum(axis=1), model.predict(X[:9]))
    X, y = load_iris(return_X_y=True)
    for target in (y[:100], y):
        rows = X[: len(target)]
        model = LogisticRegression(C=0.5).fit(rows, target)
        told = explain(model, rows)
        total = told.base_values + told.values.sum(axis=1)
        assert np.allclose(total, model.decision_function(rows))
    pairs = shap_interaction_values(model, X[:4], X)
    assert np.allclose(pairs.sum(axis=2), shap_values(model, X[:4], X))


def test_sampling_is_unbiased_and_says_how_sure_it_is():
    table, y = mixed_table(3, 80, missing=False)
    forest = RandomForestRegressor(5, random_state=0).fit(table, y)
    rows, background = table.iloc[:6], table.iloc[20:50]
    exact = shap_values(forest, rows, background)
    told = explain(forest, rows, background, method="sampling", n_permutations=6)
    assert np.allclose(told.base_values + told.values.sum(axis=1), forest.predict(rows))
    distance = (told.values - exact) / np.maximum(told.standard_errors, 1e-12)
    assert (np.abs(distance[told.standard_errors > 1e-9]) < 4.5).all()
    assert np.abs(distance).mean() > 0.05  # and they are not simply huge
    again = explain(forest, rows, background, method="sampling", n_permutations=6)
    assert np.array_equal(again.values, told.values)


def test_any_estimator_and_any_frame():
    X, y = load_iris(return_X_y=True, as_frame=True)
    for model in (GaussianNB(), KNeighborsClassifier(5), LinearSVC()):
        model.fit(X, y)
        told = explain(model, X.iloc[:3], X.iloc[::15])
        score = getattr(model, "predict_proba", getattr(model, "decision_function", None))
        assert np.allclose(told.base_values + told.values.sum(axis=1), score(X.iloc[:3]))
        assert told.feature_names == list(X.columns)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    frames = [X, pl.from_pandas(X), pl.from_pandas(X).to_arrow(), X.to_numpy()[:, ::-1][:, ::-1]]
    with pytest.warns(UserWarning, match="feature names"):
        told = [shap_values(forest, frame) for frame in frames]
    assert all(np.array_equal(told[0], each) for each in told[1:])
    polars = pl.from_pandas(X)
    sampled = shap_values(forest, polars[:2], polars[50:60], method="sampling")
    assert np.allclose(
        sampled.sum(axis=1),
        forest.predict_proba(polars[:2]) - forest.predict_proba(polars[50:60]).mean(axis=0),
    )


def test_lists_are_rows_too():
    X, y = load_iris(return_X_y=True)
    bayes, tree = GaussianNB().fit(X, y), DecisionTreeClassifier().fit(X, y)
    for model in (bayes, tree):
        told = shap_values(model, X[:3].tolist(), X[::30].tolist())
        assert np.array_equal(told, shap_values(model, X[:3], X[::30]))


def test_functions_are_explained_too():
    X = np.random.default_rng(0).normal(size=(20, 3))
    values = shap_values(lambda rows: rows[:, 0] * 2, X[:4], X, method="sampling")
    assert np.allclose(values[:, 0], 2 * (X[:4, 0] - X[:, 0].mean()))
    assert not values[:, 1:].any()


# ------------------------------------------------------------------ explanations


def test_explanations_are_indexed():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    forest = RandomForestClassifier(3, random_state=0).fit(X, names)
    told = explain(forest, X)
    assert isinstance(told, Explanation)
    assert told.shape == (150, 4, 3)
    assert len(told) == 150
    one = told[-1].of_output("virginica")
    assert np.array_equal(one.values[0], told.values[-1, :, 2])
    assert np.array_equal(one.data[0], X.iloc[-1])
    assert one.output_names == ["virginica"]
    assert len(told[10:20]) == 10
    assert len(told[np.array([3, 4])]) == 2
    for bad in (3, -4, "rosa", 1.5):
        with pytest.raises(ValueError, match="output: expected"):
            told.of_output(bad)
    with pytest.raises(IndexError, match="a row below 150"):
        told[150]
    with pytest.raises(TypeError, match="of_output"):
        told[0, 1]


def test_shap_takes_our_explanations():
    shap = pytest.importorskip("shap")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y)
    theirs = explain(model, X.iloc[:20]).to_shap()
    assert isinstance(theirs, shap.Explanation)
    assert theirs[0].values.shape == (30,)
    assert theirs.feature_names[0] == X.columns[0]
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    for draw in (shap.plots.beeswarm, shap.plots.bar, shap.plots.heatmap, shap.plots.violin):
        draw(theirs, show=False)
        plt.close("all")
    shap.plots.waterfall(theirs[0], show=False)
    shap.plots.scatter(theirs[:, X.columns[0]], show=False)
    plt.close("all")
    # These take anything with the attributes.
    ours = explain(model, X.iloc[:20])
    shap.plots.violin(ours, show=False)
    shap.summary_plot(ours, show=False)
    plt.close("all")
    shap.plots.force(ours[0], matplotlib=True, show=False)
    plt.close("all")


def test_shap_takes_one_of_several_outputs():
    shap = pytest.importorskip("shap")
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    ours = explain(forest, X)
    theirs = ours.to_shap()[:, :, 1]
    np.testing.assert_array_equal(theirs.values, ours.of_output(1).values)
    shap.plots.beeswarm(theirs, show=False)
    plt.close("all")


# ------------------------------------------------------------------ bad input


def test_bad_input_is_named():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="method: expected one of"):
        shap_values(tree, X, method="magic")
    with pytest.raises(ValueError, match="cover: expected one of"):
        shap_values(tree, X, cover="none")
    with pytest.raises(ValueError, match="feature_perturbation: expected one of"):
        shap_values(tree, X, feature_perturbation="odd")
    with pytest.raises(ValueError, match="expected a background"):
        shap_values(tree, X, feature_perturbation="interventional")
    with pytest.raises(ValueError, match="expected no background"):
        shap_values(tree, X, X, feature_perturbation="tree_path_dependent")
    with pytest.raises(ValueError, match="n_permutations: expected"):
        shap_values(tree, X, n_permutations=0)
    with pytest.raises(ValueError, match="max_background: expected"):
        shap_values(tree, X, max_background=2.5)
    with pytest.raises(ValueError, match="4 features"):
        shap_values(tree, X[:, :3])
    with pytest.raises(ValueError, match="infinity"):
        shap_values(tree, np.where(X[0, 0] == X, np.inf, X))
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        shap_values(tree, X[:0])
    with pytest.raises(TypeError, match="method='linear'"):
        shap_values(tree, X, method="linear")
    with pytest.raises(TypeError, match="only for sums over trees and linear models"):
        shap_interaction_values(GaussianNB().fit(X, y), X)
    with pytest.raises(ValueError, match="background: expected 4 columns"):
        shap_values(GaussianNB().fit(X, y), X, X[:, :2])
    with pytest.raises(TypeError, match="model: expected a fitted estimator"):
        shap_values("tree", X)
    with pytest.raises(ValueError, match="not fitted"):
        shap_values(DecisionTreeClassifier(), X)
    with pytest.raises(
        ValueError, match="background: expected a table, because X has only one row"
    ):
        shap_values(GaussianNB().fit(X, y), X[:1])
    with pytest.raises(ValueError, match="n_jobs"):
        shap_values(tree, X, n_jobs=0)


def test_small_and_odd_tables():
    X, y = load_iris(return_X_y=True)
    stump = DecisionTreeRegressor(max_depth=1).fit(X, y)
    assert shap_values(stump, X[:1]).shape == (1, 4)
    leaf = DecisionTreeRegressor().fit(X, np.ones(150))
    assert not shap_values(leaf, X).any()
    assert not shap_interaction_values(leaf, X).any()
    one_class = DecisionTreeClassifier().fit(X, np.zeros(150))
    assert shap_values(one_class, X).shape == (150, 4)
    frozen = X.copy()
    frozen.flags.writeable = False
    assert np.array_equal(shap_values(stump, frozen), shap_values(stump, X))
    assert np.array_equal(shap_values(stump, np.asfortranarray(X)), shap_values(stump, X))
    one_column = DecisionTreeRegressor().fit(X[:, :1], y)
    sampled = shap_values(one_column, X[:5, :1], X[:, :1], method="sampling")
    assert np.allclose(sampled, shap_values(one_column, X[:5, :1], X[::1, :1]), atol=0.5)


# ------------------------------------------------------------------ models of others


def table_for_others(missing=True):
    random = np.random.default_rng(5)
    # Single precision holds these numbers and what lies halfway between them: shap needs that.
    X = np.round(random.normal(size=(600, 6)) * 64) / 64
    y = X[:, 0] * (X[:, 1] > 0) + X[:, 2] + 0.2 * random.normal(size=600)
    if missing:
        X[random.random(X.shape) < 0.1] = np.nan
    return X, y


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_lightgbms_contributions(n_classes):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = table_for_others()
    X = pd.DataFrame(X, columns=list("abcdef"))
    X["g"] = pd.Categorical(np.random.default_rng(0).choice(list("uvwxyz"), len(X)))
    y = y + X["g"].cat.codes.to_numpy() * 0.3
    settings = {"n_estimators": 8, "verbose": -1, "min_child_samples": 5, "n_jobs": 1}
    if n_classes == 0:
        theirs = lightgbm.LGBMRegressor(**settings).fit(X, y)
    else:
        cuts = np.quantile(y, np.arange(1, n_classes) / n_classes)
        theirs = lightgbm.LGBMClassifier(**settings).fit(X, np.digitize(y, cuts))
    told = explain(spinney.from_lightgbm(theirs), X)
    wanted = theirs.predict(X, pred_contrib=True)
    if n_classes == 3:
        wanted = wanted.reshape(len(X), 3, 8).swapaxes(1, 2)
    assert np.allclose(told.values, wanted[:, :-1], atol=1e-10)
    assert np.allclose(told.base_values, wanted[:, -1], atol=1e-10)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_xgboosts_contributions(n_classes):
    xgboost = pytest.importorskip("xgboost")
    X, y = table_for_others()
    settings = {"n_estimators": 6, "max_depth": 5, "n_jobs": 1}
    if n_classes == 0:
        theirs = xgboost.XGBRegressor(**settings).fit(X, y)
    else:
        cuts = np.quantile(y, np.arange(1, n_classes) / n_classes)
        theirs = xgboost.XGBClassifier(**settings).fit(X, np.digitize(y, cuts))
    ours = spinney.from_xgboost(theirs)
    matrix = xgboost.DMatrix(X)
    wanted = theirs.get_booster().predict(matrix, pred_contribs=True, strict_shape=True)
    wanted = wanted.swapaxes(1, 2)
    told = explain(ours, X)
    assert told.method.endswith("by weight")
    values = told.values if n_classes else told.values[:, :, np.newaxis]
    assert np.allclose(values, wanted[:, :-1], atol=2e-5)  # theirs are single precision
    pairs = theirs.get_booster().predict(matrix, pred_interactions=True, strict_shape=True)
    pairs = pairs[:, :, :-1, :-1].transpose(0, 2, 3, 1)
    own = shap_interaction_values(ours, X)
    assert np.allclose(own if n_classes else own[..., np.newaxis], pairs, atol=2e-5)
    background = X[:30]
    ours.fit(X, y if n_classes == 0 else np.digitize(y, cuts))
    assert explain(ours, X[:2]).method.endswith("by rows")
    assert explain(ours, X[:2], background).method == "trees, interventional"


def test_shaps_values_of_scikit_learns_models():
    shap = pytest.importorskip("shap")
    from sklearn import ensemble

    X, y = table_for_others(missing=False)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    forest = ensemble.RandomForestClassifier(4, max_depth=7, random_state=0)
    forest.fit(X, labels, sample_weight=weight)
    number = ensemble.RandomForestRegressor(4, max_depth=9, random_state=0).fit(X, y)
    for theirs in (forest, number):
        ours = spinney.from_sklearn(theirs)
        path = shap.TreeExplainer(theirs, feature_perturbation="tree_path_dependent")
        wanted = path.shap_values(X[:40], check_additivity=False)
        assert np.allclose(shap_values(ours, X[:40]), wanted, atol=1e-6)
        against = shap.TreeExplainer(theirs, X[50:70], feature_perturbation="interventional")
        wanted = against.shap_values(X[:40], check_additivity=False)
        assert np.allclose(shap_values(ours, X[:40], X[50:70]), wanted, atol=1e-6)
    wanted = shap.TreeExplainer(number).shap_interaction_values(X[:10])
    assert np.allclose(shap_interaction_values(ours, X[:10]), wanted, atol=1e-6)


# ------------------------------------------------------------------ few rows, many background rows


@pytest.mark.parametrize("n_rows", [1, 2, 10, 11, 17, 48, 49])
@pytest.mark.parametrize("depth", [2, 7, None])
def test_few_rows_have_the_values_of_many(n_rows, depth):
    """Single rows, some rows and many go through the trees in ways of their own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0] * X[:, 1] + X[:, 2]) + rng.normal(size=300)
    for model in (
        RandomForestRegressor(7, max_depth=depth, random_state=0).fit(X, y),
        RandomForestClassifier(5, max_depth=depth, random_state=0).fit(X, np.digitize(y, [-1, 1])),
    ):
        many = shap_values(model, X)
        few = shap_values(model, X[:n_rows])
        np.testing.assert_allclose(few, many[:n_rows], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(shap_values(model, X[:n_rows], n_jobs=1), few)
        np.testing.assert_array_equal(shap_values(model, X[:n_rows], n_jobs=3), few)


def test_few_rows_of_trees_with_long_paths():
    """More conditions on a path than quadratures are kept for: the plan of many rows serves."""
    n = 80
    X, y = np.eye(n), 1.5 ** np.arange(n)  # each question is about a column of its own
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    assert tree.get_depth() > 70
    values = shap_values(tree, X[:2])
    base = explain(tree, X[:1]).base_values[0]
    np.testing.assert_allclose(values.sum(axis=1) + base, tree.predict(X[:2]), atol=1e-9 * y.max())


def test_a_background_is_taken_part_by_part():
    """A tree of many nodes and many rows of background: as many parts as memory asks for."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 3)), rng.normal(size=3000)
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    background = rng.normal(size=(25_000, 3))
    assert tree.tree_.node_count * len(background) > 2 * 2**26
    values = shap_values(tree, X[:2], background)
    parts = [shap_values(tree, X[:2], some) for some in np.array_split(background, 5)]
    np.testing.assert_allclose(values, np.mean(parts, axis=0), atol=1e-10)


LIGHTGBM = """tree
num_class=1
num_tree_per_iteration=1
max_feature_idx=0
objective=regression
feature_names=height
feature_infos=[0:2]

Tree=0
num_leaves=2
num_cat=0
split_feature=0
split_gain=1
threshold=1.5
decision_type=2
left_child=-1
right_child=-2
leaf_value=10 20
{covers}

end of trees
"""


def imported(tmp_path, covers):
    path = tmp_path / "model.txt"
    path.write_text(LIGHTGBM.format(covers=covers))
    return spinney.from_lightgbm(path)


def test_files_without_covers_need_a_background(tmp_path):
    rows = pd.DataFrame({"height": [1.0, 2.0]})
    counted = imported(tmp_path, "leaf_weight=1 1\nleaf_count=1 3")
    np.testing.assert_allclose(shap_values(counted, rows), [[-7.5], [2.5]])
    weighed = imported(tmp_path, "leaf_weight=3 1")
    np.testing.assert_allclose(shap_values(weighed, rows), [[-2.5], [7.5]])
    with pytest.raises(ValueError, match="cover: expected 'weight' or 'auto'"):
        shap_values(weighed, rows, cover="rows")
    bare = imported(tmp_path, "")
    for cover in ("auto", "rows", "weight"):
        with pytest.raises(
            ValueError,
            match=r"model: expected one with the number of training rows .* a background",
        ):
            shap_values(bare, rows, cover=cover)
    np.testing.assert_allclose(shap_values(bare, rows, rows), [[-5.0], [5.0]])


def test_what_cannot_be_explained_is_named():
    X = np.random.default_rng(0).normal(size=(40, 3))
    mixture = GaussianMixture(2, random_state=0).fit(X)
    with pytest.raises(
        TypeError, match="got GaussianMixture, which predicts the number of a component"
    ):
        explain(mixture, X)
    assert explain(mixture.score_samples, X[:2], X).values.shape == (2, 3)
    near = KNeighborsRegressor().fit(X, X[:, 0])
    with pytest.raises(TypeError, match="got KNeighborsRegressor; interactions are available"):
        shap_interaction_values(near, X)
    with pytest.raises(ValueError, match="X: expected at least 1 row and 1 column, got 0 rows"):
        shap_values(near, X[:0])
