"""Shapley values: definition, consistency, other libraries and invalid input."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import ensemble
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

mpl.use("agg")


def mixed_table(seed, n=60, missing=True):
    """Return a table of mixed types, and a target."""
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
    """Return the rows as floats, with categories as codes and missing values as NaN."""
    codes = np.empty(table.shape)
    for j, categories in enumerate(model.categories_):
        column = table.iloc[:, j]
        if categories is None:
            codes[:, j] = column.astype(float)
        else:
            code_of_value = {value: code for code, value in enumerate(categories)}
            codes[:, j] = [code_of_value.get(value, np.nan) for value in column]
    return codes


def slow_shap(model, table, background=None, interactions=False):
    tree_sum = read_sum(model)
    scores = tree_sum.scores
    reader = model if tree_sum.reader is None else tree_sum.reader
    rows = codes_of(reader, table)
    background_rows = None if background is None else codes_of(reader, background)
    cover_of = _usual_cover(model)
    n_outputs = len(scores.start)
    calculate = shapley_interactions if interactions else shapley_values
    results = []
    for row in rows:

        def worth(known, row=row):
            total = np.array(scores.start, dtype=float)
            for tree, values, index in zip(
                scores.trees, scores.values, scores.adds_to, strict=True
            ):
                cover = tree.n_node_samples if cover_of == "rows" else tree.weighted_n_node_samples
                if background_rows is None:
                    game = tree_worth(tree, values, cover, row)
                else:
                    game = background_worth(
                        lambda x, t=tree, v=values: leaf_value(t, v, x), row, background_rows
                    )
                contribution = np.zeros(n_outputs)
                if index is None:
                    contribution += game(known)
                else:
                    contribution[index] += game(known)[0]
                total += contribution
            return total

        results.append(calculate(worth, rows.shape[1]))
    values = np.array([v for v, _ in results]) * tree_sum.factor
    base = results[0][1] * tree_sum.factor
    return (values[..., 0], base[0]) if n_outputs == 1 else (values, base)


def models(seed, y):
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    binary_labels = np.where(y > np.median(y), "yes", "no")
    yield DecisionTreeRegressor(max_depth=7, random_state=seed), y
    yield DecisionTreeClassifier(random_state=seed), labels
    yield RandomForestClassifier(3, random_state=seed), binary_labels
    yield RandomForestRegressor(3, random_state=seed), np.column_stack([y, -2 * y])
    yield ExtraTreesClassifier(2, random_state=seed), labels
    yield BaggingRegressor(DecisionTreeRegressor(), 2, max_features=0.7, random_state=seed), y
    yield (
        GradientBoostingClassifier(n_estimators=3, random_state=seed, validation_fraction=None),
        binary_labels,
    )
    yield GradientBoostingClassifier(n_estimators=2, random_state=seed), labels
    yield GradientBoostingRegressor(n_estimators=3, growth="oblivious", random_state=seed), y
    yield AdaBoostClassifier(n_estimators=3, random_state=seed), binary_labels
    yield IsolationForest(n_estimators=3, max_samples=20, random_state=seed), None
    yield AnyBoostRegressor(n_estimators=3, random_state=seed), y
    yield AnyBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3), binary_labels


N_MODELS = sum(1 for _ in models(0, np.arange(60.0)))


# ------------------------------------------------------------------ definition


@pytest.mark.parametrize("number", range(N_MODELS))
def test_values_match_the_definition(number):
    table, y = mixed_table(number)
    model, target = list(models(number, y))[number]
    model.fit(table, target)
    rows = table.iloc[:3]
    values, base = slow_shap(model, rows)
    explanation = explain(model, rows)
    assert np.allclose(explanation.values, values, atol=1e-11)
    assert np.allclose(explanation.base_values, base, atol=1e-11)
    # Many rows use precomputed tables; few rows walk down the trees.
    repeated = pd.concat([rows] * 400, ignore_index=True)
    assert np.allclose(shap_values(model, repeated)[-3:], values, atol=1e-11)


@pytest.mark.parametrize("number", range(N_MODELS))
def test_values_with_a_background_match_the_definition(number):
    table, y = mixed_table(number + 50)
    model, target = list(models(number, y))[number]
    model.fit(table, target)
    rows, background = table.iloc[:2], table.iloc[30:36]
    values, base = slow_shap(model, rows, background)
    explanation = explain(model, rows, background)
    assert np.allclose(explanation.values, values, atol=1e-11)
    assert np.allclose(explanation.base_values, base, atol=1e-11)
    repeated = pd.concat([rows] * 400, ignore_index=True)
    assert np.allclose(shap_values(model, repeated, background)[-2:], values, atol=1e-11)


@pytest.mark.parametrize("number", [0, 1, 3, 7])
@pytest.mark.parametrize("with_background", [False, True])
def test_interactions_match_the_definition(number, with_background):
    table, y = mixed_table(number + 9)
    model, target = list(models(number, y))[number]
    model.fit(table, target)
    rows = table.iloc[:2]
    background = table.iloc[30:35] if with_background else None
    values, _ = slow_shap(model, rows, background, interactions=True)
    assert np.allclose(shap_interaction_values(model, rows, background), values, atol=1e-11)
    repeated = pd.concat([rows] * 400, ignore_index=True)
    pairs = shap_interaction_values(model, repeated, background)
    assert np.allclose(pairs[-2:], values, atol=1e-11)


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 40), st.booleans(), st.booleans())
def test_values_add_up_and_interactions_are_symmetric(
    seed, depth, n_rows, with_background, missing
):
    table, y = mixed_table(seed, 50, missing)
    tree = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(table, y)
    rows = table.iloc[:n_rows]
    background = table.iloc[20:27] if with_background else None
    explanation = explain(tree, rows, background)
    assert np.allclose(
        explanation.base_values + explanation.values.sum(axis=1), tree.predict(rows), atol=1e-10
    )
    pairs = shap_interaction_values(tree, rows, background)
    assert np.allclose(pairs.sum(axis=2), explanation.values, atol=1e-10)
    assert np.array_equal(pairs, pairs.swapaxes(1, 2))
    unused = np.setdiff1d(np.arange(5), tree.tree_.feature)
    assert not explanation.values[:, unused].any()


def test_equal_columns_get_equal_values():
    random = np.random.default_rng(0)
    X = random.integers(0, 2, (200, 3)).astype(float)
    tree = DecisionTreeRegressor().fit(X, X[:, 0] + X[:, 1] + 5 * X[:, 0] * X[:, 1])
    full = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], dtype=float)
    values = shap_values(tree, np.array([[1.0, 1.0, 0.0]]), full)
    assert values[0, 0] == pytest.approx(values[0, 1], abs=1e-12)
    assert values[0, 2] == 0


@pytest.mark.parametrize("leaves", [8, 64])
def test_long_paths_and_many_rows(leaves):
    """Long paths use the walk; few rows must have the same values as many."""
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


def test_leaves_with_too_large_tables_use_the_walk():
    """With many outputs and long paths some leaves use the walk instead of a table."""
    random = np.random.default_rng(4)
    X = random.normal(size=(1500, 12))
    labels = (X[:, :4] > 0) @ [1, 2, 4, 8]
    tree = DecisionTreeClassifier(splitter="random", random_state=0).fit(X, labels)
    rows, background = X[:200], X[::75]
    explanation = explain(tree, rows, background)
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert np.allclose(total, tree.predict_proba(rows), atol=1e-10)
    assert np.allclose(explanation.values[:2], shap_values(tree, rows[:2], background), atol=1e-12)


def test_long_paths_with_a_background():
    random = np.random.default_rng(2)
    X = random.normal(size=(800, 16))
    deep = DecisionTreeRegressor(max_depth=16, splitter="random", random_state=0)
    deep.fit(X, X.sum(axis=1))
    explanation = explain(deep, X[:30], X[100:120])
    assert np.allclose(
        explanation.base_values + explanation.values.sum(axis=1), deep.predict(X[:30])
    )
    pairs = shap_interaction_values(deep, X[:30], X[100:120])
    assert np.allclose(pairs.sum(axis=2), explanation.values, atol=1e-10)


# ------------------------------------------------------------------ outputs and models


def test_output_is_described_and_values_add_up():
    X, y = load_iris(return_X_y=True)
    binary_labels = y[:100]
    cases = [
        (GradientBoostingClassifier(n_estimators=9), X[:100], binary_labels, "log-odds of 1"),
        (HistGradientBoostingClassifier(max_iter=9), X, y, "score before softmax"),
        (RandomForestClassifier(9, random_state=0), X, y, "probability"),
        (RandomForestClassifier(9, voting="hard", random_state=0), X, y, "probability"),
        (BaggingClassifier(DecisionTreeClassifier(), 4, random_state=0), X, y, "probability"),
        (GradientBoostingRegressor(loss="poisson", n_estimators=9), X, y, "logarithm of the pred"),
        (IsolationForest(n_estimators=9, random_state=0), X, None, "mean length of the path"),
    ]
    for model, rows, target, output in cases:
        model.fit(rows, target)
        explanation = explain(model, rows)
        assert explanation.output.startswith(output)
        total = explanation.base_values + explanation.values.sum(axis=1)
        if output == "probability":
            expected = model.predict_proba(rows)
        elif output.startswith("logarithm"):
            expected = np.log(model.predict(rows))
        elif output.startswith("mean length"):
            path_lengths = -np.log2(-model.score_samples(rows))
            expected = path_lengths * total.mean() / path_lengths.mean()  # equal up to a factor
        else:
            expected = model.decision_function(rows)
        assert np.allclose(total, expected, atol=1e-9)


def test_values_of_any_boost_add_up():
    table, y = mixed_table(3)
    binary_labels = np.where(y > np.median(y), "yes", "no")
    weights = np.random.default_rng(0).uniform(size=len(y))
    for learner in (None, DecisionTreeClassifier(max_depth=1)):
        model = AnyBoostClassifier(learner, n_estimators=8, random_state=0)
        explanation = explain(model.fit(table, binary_labels, sample_weight=weights), table)
        assert explanation.output == "score of yes"
        assert explanation.method == "trees, path dependent, by weight"
        total = explanation.base_values + explanation.values.sum(axis=1)
        assert np.allclose(total, model.decision_function(table), atol=1e-11)
        pairs = shap_interaction_values(model, table, table[:10])
        assert np.allclose(pairs.sum(axis=2), shap_values(model, table, table[:10]), atol=1e-11)
    numeric_columns = table[["few", "noise"]]
    linear_booster = AnyBoostRegressor(LinearRegression(), n_estimators=2).fit(numeric_columns, y)
    assert explain(linear_booster, numeric_columns, numeric_columns[:5]).method.startswith(
        "sampling"
    )
    with pytest.raises(TypeError, match="its learners are LinearRegression"):
        shap_values(linear_booster, numeric_columns, method="tree")


def test_median_of_trees_uses_sampling():
    X, y = load_diabetes(return_X_y=True)
    model = AdaBoostRegressor(n_estimators=4, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="AdaBoostRegressor predicts a median"):
        shap_values(model, X[:2], method="tree")
    explanation = explain(model, X[:2], X[:20])
    assert explanation.method.startswith("sampling")
    assert np.allclose(
        explanation.base_values + explanation.values.sum(axis=1), model.predict(X[:2])
    )


def test_linear_models_have_a_closed_form():
    X, y = load_diabetes(return_X_y=True)
    for model in (LinearRegression(), Ridge(0.1)):
        model.fit(X, y)
        explanation = explain(model, X[:9], X)
        assert np.allclose(explanation.values, model.coef_ * (X[:9] - X.mean(axis=0)))
        assert np.allclose(
            explanation.base_values + explanation.values.sum(axis=1), model.predict(X[:9])
        )
    X, y = load_iris(return_X_y=True)
    for target in (y[:100], y):
        rows = X[: len(target)]
        model = LogisticRegression(C=0.5).fit(rows, target)
        explanation = explain(model, rows)
        total = explanation.base_values + explanation.values.sum(axis=1)
        assert np.allclose(total, model.decision_function(rows))
    pairs = shap_interaction_values(model, X[:4], X)
    assert np.allclose(pairs.sum(axis=2), shap_values(model, X[:4], X))


def test_sampling_is_unbiased_with_valid_standard_errors():
    table, y = mixed_table(3, 80, missing=False)
    forest = RandomForestRegressor(5, random_state=0).fit(table, y)
    rows, background = table.iloc[:6], table.iloc[20:50]
    exact = shap_values(forest, rows, background)
    explanation = explain(forest, rows, background, method="sampling", n_permutations=6)
    assert np.allclose(
        explanation.base_values + explanation.values.sum(axis=1), forest.predict(rows)
    )
    distance = (explanation.values - exact) / np.maximum(explanation.standard_errors, 1e-12)
    assert (np.abs(distance[explanation.standard_errors > 1e-9]) < 4.5).all()
    assert np.abs(distance).mean() > 0.05  # the standard errors are not simply too large
    again = explain(forest, rows, background, method="sampling", n_permutations=6)
    assert np.array_equal(again.values, explanation.values)


def test_any_estimator_and_frame_type():
    X, y = load_iris(return_X_y=True, as_frame=True)
    for model in (GaussianNB(), KNeighborsClassifier(5), LinearSVC()):
        model.fit(X, y)
        explanation = explain(model, X.iloc[:3], X.iloc[::15])
        score = getattr(model, "predict_proba", getattr(model, "decision_function", None))
        assert np.allclose(
            explanation.base_values + explanation.values.sum(axis=1), score(X.iloc[:3])
        )
        assert explanation.feature_names == list(X.columns)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    frames = [X, pl.from_pandas(X), pl.from_pandas(X).to_arrow(), X.to_numpy()[:, ::-1][:, ::-1]]
    with pytest.warns(UserWarning, match="feature names"):
        values = [shap_values(forest, frame) for frame in frames]
    assert all(np.array_equal(values[0], each) for each in values[1:])
    polars = pl.from_pandas(X)
    sampled = shap_values(forest, polars[:2], polars[50:60], method="sampling")
    assert np.allclose(
        sampled.sum(axis=1),
        forest.predict_proba(polars[:2]) - forest.predict_proba(polars[50:60]).mean(axis=0),
    )


def test_lists_are_accepted_as_rows():
    X, y = load_iris(return_X_y=True)
    bayes, tree = GaussianNB().fit(X, y), DecisionTreeClassifier().fit(X, y)
    for model in (bayes, tree):
        values = shap_values(model, X[:3].tolist(), X[::30].tolist())
        assert np.array_equal(values, shap_values(model, X[:3], X[::30]))


def test_functions_can_be_explained():
    X = np.random.default_rng(0).normal(size=(20, 3))
    values = shap_values(lambda rows: rows[:, 0] * 2, X[:4], X, method="sampling")
    assert np.allclose(values[:, 0], 2 * (X[:4, 0] - X[:, 0].mean()))
    assert not values[:, 1:].any()


# ------------------------------------------------------------------ explanations


def test_explanations_can_be_indexed():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    forest = RandomForestClassifier(3, random_state=0).fit(X, names)
    explanation = explain(forest, X)
    assert isinstance(explanation, Explanation)
    assert explanation.shape == (150, 4, 3)
    assert len(explanation) == 150
    one = explanation[-1].of_output("virginica")
    assert np.array_equal(one.values[0], explanation.values[-1, :, 2])
    assert np.array_equal(one.data[0], X.iloc[-1])
    assert one.output_names == ["virginica"]
    assert len(explanation[10:20]) == 10
    assert len(explanation[np.array([3, 4])]) == 2
    for bad in (3, -4, "rosa", 1.5):
        with pytest.raises(ValueError, match="output: expected"):
            explanation.of_output(bad)
    with pytest.raises(IndexError, match="a row below 150"):
        explanation[150]
    with pytest.raises(TypeError, match="of_output"):
        explanation[0, 1]


def test_shap_accepts_explanations():
    shap = pytest.importorskip("shap")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y)
    theirs = explain(model, X.iloc[:20]).to_shap()
    assert isinstance(theirs, shap.Explanation)
    assert theirs[0].values.shape == (30,)
    assert theirs.feature_names[0] == X.columns[0]
    for draw in (shap.plots.beeswarm, shap.plots.bar, shap.plots.heatmap, shap.plots.violin):
        draw(theirs, show=False)
        plt.close("all")
    shap.plots.waterfall(theirs[0], show=False)
    shap.plots.scatter(theirs[:, X.columns[0]], show=False)
    plt.close("all")
    # These plots accept any object with the attributes.
    ours = explain(model, X.iloc[:20])
    shap.plots.violin(ours, show=False)
    shap.summary_plot(ours, show=False)
    plt.close("all")
    shap.plots.force(ours[0], matplotlib=True, show=False)
    plt.close("all")


def test_shap_accepts_one_of_several_outputs():
    shap = pytest.importorskip("shap")
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    ours = explain(forest, X)
    theirs = ours.to_shap()[:, :, 1]
    np.testing.assert_array_equal(theirs.values, ours.of_output(1).values)
    shap.plots.beeswarm(theirs, show=False)
    plt.close("all")


# ------------------------------------------------------------------ invalid input


def test_invalid_input_raises():
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


def test_edge_cases_of_tables():
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


# ------------------------------------------------------------------ other libraries


def table_for_other_libraries(missing=True):
    random = np.random.default_rng(5)
    # shap needs numbers that single precision represents exactly, midpoints included.
    X = np.round(random.normal(size=(600, 6)) * 64) / 64
    y = X[:, 0] * (X[:, 1] > 0) + X[:, 2] + 0.2 * random.normal(size=600)
    if missing:
        X[random.random(X.shape) < 0.1] = np.nan
    return X, y


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_values_match_lightgbm(n_classes):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = table_for_other_libraries()
    X = pd.DataFrame(X, columns=list("abcdef"))
    X["g"] = pd.Categorical(np.random.default_rng(0).choice(list("uvwxyz"), len(X)))
    y = y + X["g"].cat.codes.to_numpy() * 0.3
    settings = {"n_estimators": 8, "verbose": -1, "min_child_samples": 5, "n_jobs": 1}
    if n_classes == 0:
        theirs = lightgbm.LGBMRegressor(**settings).fit(X, y)
    else:
        cuts = np.quantile(y, np.arange(1, n_classes) / n_classes)
        theirs = lightgbm.LGBMClassifier(**settings).fit(X, np.digitize(y, cuts))
    explanation = explain(spinney.from_lightgbm(theirs), X)
    expected = theirs.predict(X, pred_contrib=True)
    if n_classes == 3:
        expected = expected.reshape(len(X), 3, 8).swapaxes(1, 2)
    assert np.allclose(explanation.values, expected[:, :-1], atol=1e-10)
    assert np.allclose(explanation.base_values, expected[:, -1], atol=1e-10)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_values_match_xgboost(n_classes):
    xgboost = pytest.importorskip("xgboost")
    X, y = table_for_other_libraries()
    settings = {"n_estimators": 6, "max_depth": 5, "n_jobs": 1}
    if n_classes == 0:
        theirs = xgboost.XGBRegressor(**settings).fit(X, y)
    else:
        cuts = np.quantile(y, np.arange(1, n_classes) / n_classes)
        theirs = xgboost.XGBClassifier(**settings).fit(X, np.digitize(y, cuts))
    ours = spinney.from_xgboost(theirs)
    matrix = xgboost.DMatrix(X)
    expected = theirs.get_booster().predict(matrix, pred_contribs=True, strict_shape=True)
    expected = expected.swapaxes(1, 2)
    explanation = explain(ours, X)
    assert explanation.method.endswith("by weight")
    values = explanation.values if n_classes else explanation.values[:, :, np.newaxis]
    assert np.allclose(values, expected[:, :-1], atol=2e-5)  # xgboost uses single precision
    pairs = theirs.get_booster().predict(matrix, pred_interactions=True, strict_shape=True)
    pairs = pairs[:, :, :-1, :-1].transpose(0, 2, 3, 1)
    interactions = shap_interaction_values(ours, X)
    assert np.allclose(
        interactions if n_classes else interactions[..., np.newaxis], pairs, atol=2e-5
    )
    background = X[:30]
    ours.fit(X, y if n_classes == 0 else np.digitize(y, cuts))
    assert explain(ours, X[:2]).method.endswith("by rows")
    assert explain(ours, X[:2], background).method == "trees, interventional"


def test_values_match_shap_for_scikit_learn_models():
    shap = pytest.importorskip("shap")
    X, y = table_for_other_libraries(missing=False)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    forest = ensemble.RandomForestClassifier(4, max_depth=7, random_state=0)
    forest.fit(X, labels, sample_weight=weight)
    number = ensemble.RandomForestRegressor(4, max_depth=9, random_state=0).fit(X, y)
    for theirs in (forest, number):
        ours = spinney.from_sklearn(theirs)
        path = shap.TreeExplainer(theirs, feature_perturbation="tree_path_dependent")
        expected = path.shap_values(X[:40], check_additivity=False)
        assert np.allclose(shap_values(ours, X[:40]), expected, atol=1e-6)
        against = shap.TreeExplainer(theirs, X[50:70], feature_perturbation="interventional")
        expected = against.shap_values(X[:40], check_additivity=False)
        assert np.allclose(shap_values(ours, X[:40], X[50:70]), expected, atol=1e-6)
    expected = shap.TreeExplainer(number).shap_interaction_values(X[:10])
    assert np.allclose(shap_interaction_values(ours, X[:10]), expected, atol=1e-6)


# ------------------------------------------------------------------ few rows, many background rows


@pytest.mark.parametrize("n_rows", [1, 2, 10, 11, 17, 48, 49])
@pytest.mark.parametrize("depth", [2, 7, None])
def test_few_rows_have_the_same_values_as_many(n_rows, depth):
    """Single rows, a few rows and many rows use different algorithms."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0] * X[:, 1] + X[:, 2]) + rng.normal(size=300)
    for model in (
        RandomForestRegressor(7, max_depth=depth, random_state=0).fit(X, y),
        RandomForestClassifier(5, max_depth=depth, random_state=0).fit(X, np.digitize(y, [-1, 1])),
    ):
        of_many = shap_values(model, X)
        values = shap_values(model, X[:n_rows])
        np.testing.assert_allclose(values, of_many[:n_rows], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(shap_values(model, X[:n_rows], n_jobs=1), values)
        np.testing.assert_array_equal(shap_values(model, X[:n_rows], n_jobs=3), values)


def test_few_rows_with_very_long_paths():
    """Paths too long for the precomputed quadratures use the algorithm for many rows."""
    n = 80
    X, y = np.eye(n), 1.5 ** np.arange(n)  # each split uses another column
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    assert tree.get_depth() > 70
    values = shap_values(tree, X[:2])
    base = explain(tree, X[:1]).base_values[0]
    np.testing.assert_allclose(values.sum(axis=1) + base, tree.predict(X[:2]), atol=1e-9 * y.max())


def test_large_backgrounds_are_processed_in_blocks():
    """A large tree with a large background is processed in blocks to limit memory."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 3)), rng.normal(size=3000)
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    background = rng.normal(size=(25_000, 3))
    assert tree.tree_.node_count * len(background) > 2 * 2**26
    values = shap_values(tree, X[:2], background)
    blocks = [shap_values(tree, X[:2], block) for block in np.array_split(background, 5)]
    np.testing.assert_allclose(values, np.mean(blocks, axis=0), atol=1e-10)


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


def test_unsupported_models_raise():
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
