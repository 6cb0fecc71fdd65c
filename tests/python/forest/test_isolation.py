"""Isolation forests and the embedding of random trees."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.ensemble
from scipy import sparse
from sklearn.metrics import roc_auc_score

from spinney.ensemble import IsolationForest, RandomTreesEmbedding


def with_outliers(seed=0):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(500, 3)), rng.uniform(-8, 8, (25, 3))])
    return X, np.repeat([0, 1], [500, 25])


def path_length(n):
    """Return the mean number of random splits that separate a row from n - 1 others."""
    if n <= 1:
        return 0.0
    if n == 2:
        return 1.0
    return 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n


@pytest.mark.parametrize("max_features", [1.0, 2])
@pytest.mark.parametrize("bootstrap", [False, True])
def test_scores_by_hand(max_features, bootstrap):
    X, _ = with_outliers()
    model = IsolationForest(
        n_estimators=7,
        max_samples=64,
        max_features=max_features,
        bootstrap=bootstrap,
        random_state=0,
    ).fit(X)
    depths = np.zeros(len(X))
    for tree, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        leaves = tree.apply(X[:, columns])
        nodes = tree.tree_
        depth = nodes.compute_node_depths() - 1
        depths += depth[leaves] + [path_length(n) for n in nodes.n_node_samples[leaves]]
    expected = -(2.0 ** (-depths / (7 * path_length(64))))
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), expected + 0.5)
    np.testing.assert_array_equal(model.predict(X), np.where(expected + 0.5 < 0, -1, 1))


def test_outliers_are_detected_as_well_as_by_scikit_learn():
    ours, theirs = [], []
    for seed in range(5):
        X, outlier = with_outliers(seed)
        for forest_class, scores in (
            (IsolationForest, ours),
            (sklearn.ensemble.IsolationForest, theirs),
        ):
            model = forest_class(random_state=seed).fit(X)
            scores.append(roc_auc_score(outlier, -model.score_samples(X)))
    assert np.mean(ours) > np.mean(theirs) - 0.005


def test_samples_of_trees():
    X, _ = with_outliers()
    model = IsolationForest(n_estimators=5, max_samples=40, random_state=0).fit(X)
    for rows, tree in zip(model.estimators_samples_, model.estimators_, strict=True):
        assert len(set(rows)) == 40
        assert tree.tree_.n_node_samples[0] == 40
        assert tree.get_depth() <= 6
    assert IsolationForest().fit(X).max_samples_ == 256
    with pytest.warns(UserWarning, match="greater than the total number of samples"):
        assert IsolationForest(max_samples=10_000).fit(X).max_samples_ == len(X)
    weights = np.where(np.arange(len(X)) < 100, 1.0, 0.0)
    model = IsolationForest(max_samples=50)
    model.fit(X, sample_weight=weights)
    assert all(rows.max() < 100 for rows in model.estimators_samples_)
    with pytest.raises(ValueError, match="at most 100"):
        IsolationForest(max_samples=200).fit(X, sample_weight=weights)


def test_contamination_sets_the_threshold():
    X, _ = with_outliers()
    model = IsolationForest(contamination=0.1, random_state=0).fit(X)
    assert (model.predict(X) == -1).mean() == pytest.approx(0.1, abs=0.005)
    assert (IsolationForest(contamination=0.1, random_state=0).fit_predict(X) == -1).sum() > 40


def test_warm_start_gives_the_same_trees():
    X, _ = with_outliers()
    want = IsolationForest(random_state=0).fit(X).score_samples(X)
    grown = IsolationForest(n_estimators=30, random_state=0, warm_start=True).fit(X)
    grown.set_params(n_estimators=100).fit(X)
    np.testing.assert_array_equal(want, grown.score_samples(X))


def test_rare_categories_and_missing_values_are_outliers():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(["a", "b"], 400), "x": rng.normal(size=400)})
    frame.loc[399, "c"] = "rare"
    frame.loc[398, "x"] = np.nan
    model = IsolationForest(n_estimators=300, max_samples=400, random_state=0).fit(frame)
    order = np.argsort(model.score_samples(frame))
    assert {398, 399} <= set(order[:12])
    assert np.isfinite(model.score_samples(pd.DataFrame({"c": ["new"], "x": [np.nan]}))).all()


def test_unusual_and_invalid_tables():
    assert IsolationForest(random_state=0).fit([[1.0]]).score_samples([[1.0]]).shape == (1,)
    same = np.ones((50, 2))
    assert np.unique(IsolationForest(random_state=0).fit(same).score_samples(same)).size == 1
    with pytest.raises(ValueError, match="infinity"):
        IsolationForest().fit([[np.inf], [1.0]])
    with pytest.raises(ValueError, match="max_features must be <= n_features"):
        IsolationForest(max_features=3).fit(same)


def test_embedding_encodes_leaves():
    X, _ = with_outliers()
    model = RandomTreesEmbedding(n_estimators=12, max_depth=3, random_state=0)
    embedded = model.fit_transform(X)
    assert sparse.issparse(embedded)
    np.testing.assert_array_equal(np.asarray(embedded.sum(axis=1)).ravel(), 12)
    np.testing.assert_array_equal(model.transform(X).toarray(), embedded.toarray())
    leaves = np.column_stack([tree.apply(X) for tree in model.estimators_])
    np.testing.assert_array_equal(leaves, model.apply(X))
    names = model.get_feature_names_out()
    assert len(names) == embedded.shape[1]
    assert names[0].startswith("randomtreesembedding_0_")
    dense = RandomTreesEmbedding(5, sparse_output=False, random_state=0).fit(X).transform(X)
    assert isinstance(dense, np.ndarray)
    roots = [
        tree.tree_.feature[0]
        for tree in RandomTreesEmbedding(600, random_state=0).fit(X).estimators_
    ]
    assert np.all(np.abs(np.bincount(roots) - 200) < 60)  # every column is equally probable
