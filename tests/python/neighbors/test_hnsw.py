"""The HNSW index: recall against brute force, files and errors."""

import json
import pickle

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn.base import clone
from sklearn.datasets import make_blobs

from spinney.neighbors import HNSW


def brute(base, queries, k, metric="euclidean"):
    base, queries = base.astype(np.float64), queries.astype(np.float64)
    if metric == "cosine":
        with np.errstate(invalid="ignore"):
            base = np.nan_to_num(base / np.linalg.norm(base, axis=1, keepdims=True))
            queries = np.nan_to_num(queries / np.linalg.norm(queries, axis=1, keepdims=True))
    if metric == "euclidean":
        distances = np.sqrt(((queries[:, None] - base[None]) ** 2).sum(-1))
    else:
        distances = (1 if metric == "cosine" else 0) - queries @ base.T
    ids = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, ids, 1), ids


def recall(found, true):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, true, strict=True)])


def arrays(index):
    return {name: value for name, value in index._index.state().items() if np.ndim(value)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4000, 20)).astype(np.float32), rng.normal(size=(100, 20))


@pytest.fixture(scope="module")
def fitted(data):
    return HNSW(n_jobs=1).fit(data[0])


@pytest.mark.parametrize("codes", [None, "uint8"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_recall_on_random_rows(data, metric, codes):
    if codes and metric == "inner_product":
        with pytest.raises(ValueError, match="codes"):
            HNSW(metric, codes=codes).fit(data[0])
        return
    base, queries = data
    index = HNSW(metric, codes=codes).fit(base)
    distances, ids = index.query(queries, k=10, ef=200)
    true_distances, true_ids = brute(base, queries, 10, metric)
    assert recall(ids, true_ids) > 0.97
    assert (np.diff(distances, axis=1) >= 0).all()
    same = ids == true_ids
    np.testing.assert_allclose(distances[same], true_distances[same], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("codes", [None, "uint8"])
def test_recall_on_clusters(codes):
    X, _ = make_blobs(5000, 16, centers=50, cluster_std=0.2, random_state=0)
    queries, base = X[:200], X[200:]
    index = HNSW(codes=codes).fit(base)
    assert recall(index.query(queries, k=10, ef=150)[1], brute(base, queries, 10)[1]) > 0.95


@pytest.mark.parametrize("codes", [None, "uint8"])
@pytest.mark.parametrize("n_features", [1, 3, 15, 16, 17, 33, 65])
def test_exact_with_all_candidates(n_features, codes):
    rng = np.random.default_rng(n_features)
    base, queries = rng.normal(size=(150, n_features)), rng.normal(size=(40, n_features))
    distances, ids = HNSW(codes=codes).fit(base).query(queries, k=7, ef=150)
    true_distances, true_ids = brute(base, queries, 7)
    np.testing.assert_array_equal(ids, true_ids)
    np.testing.assert_allclose(distances, true_distances, rtol=1e-4, atol=1e-5)


def test_distances_of_searches_and_of_brute_force(data, fitted):
    # This ef is small enough for a graph search, and large enough to find nearly all rows.
    distances, ids = fitted.query(data[1], k=5, ef=1000)
    true_distances, true_ids = brute(data[0], data[1], 5)
    assert recall(ids, true_ids) > 0.995
    np.testing.assert_allclose(distances[ids == true_ids], true_distances[ids == true_ids], 1e-5)


def test_threads_do_not_change_the_graph(data):
    one = HNSW(n_jobs=1, target_recall=0.9).fit(data[0])
    two = HNSW(n_jobs=2, target_recall=0.9).fit(data[0])
    for name, values in arrays(one).items():
        np.testing.assert_array_equal(values, arrays(two)[name], err_msg=name)
    np.testing.assert_array_equal(one.ids_, two.ids_)
    assert one.ef_search_ == two.ef_search_
    for a, b in zip(one.query(data[1]), two.query(data[1]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_batches_of_queries_are_single_queries(data, fitted):
    ids = fitted.query(data[1], k=4, return_distance=False)
    one_by_one = [fitted.query(row[None], k=4, return_distance=False)[0] for row in data[1]]
    np.testing.assert_array_equal(ids, one_by_one)


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_filter_restricts_the_results(data, fitted, share):
    mask = np.random.default_rng(1).random(len(data[0])) < share
    _, ids = fitted.query(data[1], k=10, ef=100, filter=mask)
    assert mask[ids].all()
    allowed = np.flatnonzero(mask)
    true_ids = allowed[brute(data[0][mask], data[1], 10)[1]]
    assert recall(ids, true_ids) > 0.95
    np.testing.assert_array_equal(
        ids, fitted.query(data[1], k=10, ef=100, filter=lambda i: mask[i])[1]
    )


def test_filter_that_fewer_than_k_vectors_pass(data, fitted):
    distances, ids = fitted.query(data[1][:3], k=4, filter=lambda ids: np.isin(ids, [5, 9]))
    assert (np.sort(ids[:, :2], axis=1) == [5, 9]).all()
    assert (ids[:, 2:] == -1).all()
    assert np.isinf(distances[:, 2:]).all()


def test_filter_is_checked(data, fitted):
    with pytest.raises(ValueError, match="filter"):
        fitted.query(data[1], filter=np.ones(10, dtype=bool))
    with pytest.raises(ValueError, match="filter"):
        fitted.query(data[1], filter=np.ones(len(data[0])))
    with pytest.raises(ValueError, match="filter"):
        fitted.query(data[1], filter=lambda ids: [True])


@pytest.mark.parametrize("codes", [None, "uint8"])
def test_deleted_vectors_are_not_found(data, codes):
    base, queries = data
    index = HNSW(codes=codes).fit(base)
    gone = np.unique(index.query(queries, k=10)[1])
    index.delete(gone)
    assert len(index) == len(base) - len(gone)
    _, ids = index.query(queries, k=10, ef=200)
    assert not np.isin(ids, gone).any()
    left = np.setdiff1d(np.arange(len(base)), gone)
    assert recall(ids, left[brute(base[left], queries, 10)[1]]) > 0.95
    assert set(index.ids_) == set(left)
    with pytest.raises(ValueError, match="no vector"):
        index.delete(gone[:1])
    # The id of a deleted vector may be used again.
    index.add(queries[:1], ids=gone[:1])
    assert index.query(queries[:1], k=1)[1][0, 0] == gone[0]


def test_add_after_query(data):
    base, queries = data
    index = HNSW().fit(base[:3000])
    index.query(queries)
    index.add(base[3000:3500]).add(base[3500:], ids=np.arange(10_000, 10_500))
    assert len(index) == 4000
    _, ids = index.query(base[3000:], k=1, ef=100)
    expected = np.r_[np.arange(3000, 3500), np.arange(10_000, 10_500)]
    assert np.mean(ids[:, 0] == expected) > 0.99
    with pytest.raises(ValueError, match="in use"):
        index.add(base[:1], ids=[10_001])
    with pytest.raises(ValueError, match="distinct ids"):
        index.add(base[:2], ids=[7_000, 7_000])
    with pytest.raises(ValueError, match="ids"):
        index.add(base[:2], ids=[7_000])


def test_batch_far_from_all_others(data):
    # Rows of a batch that is far from all other rows must have links to each other.
    far = data[1] + 100
    index = HNSW().fit(data[0]).add(np.repeat(far, 2, axis=0) + np.tile([[0], [1e-3]], (100, 1)))
    ids = index.query(far, k=10, ef=60, return_distance=False)
    true_ids = brute(far, far, 5)[1]
    assert (ids >= len(data[0])).mean() > 0.99
    assert recall((ids - len(data[0])) // 2, true_ids) > 0.95


def test_add_without_fit_one_by_one(data):
    index = HNSW()
    for row in data[0][:60]:
        index.add(row[None])
    np.testing.assert_array_equal(
        index.query(data[1], k=60, return_distance=False), brute(data[0][:60], data[1], 60)[1]
    )


def test_large_ids(data):
    ids = np.arange(50) * 10**12 - 7
    index = HNSW().add(data[0][:50], ids=ids)
    np.testing.assert_array_equal(index.query(data[0][:50], k=1)[1][:, 0], ids)
    np.testing.assert_array_equal(np.sort(index.ids_), ids)


def test_tuning_reaches_the_recall(data):
    base, queries = data
    index = HNSW(target_recall=0.95, random_state=3).fit(base)
    assert len(index) == len(base)
    assert index.recall_ >= 0.95
    assert index.recall_k_ == 10
    assert f"ef_search_={index.ef_search_}" in repr(index)
    assert "recall_=" in repr(index)
    true_ids = brute(base, queries, 10)[1]
    assert recall(index.query(queries, k=10)[1], true_ids) > 0.92
    index.tune(queries, k=5, target_recall=0.99)
    assert index.recall_k_ == 5
    assert recall(index.query(queries, k=5)[1], brute(base, queries, 5)[1]) >= 0.99
    # It is the smallest ef: a smaller one does not reach the recall.
    assert recall(index.query(queries, k=5, ef=index.ef_search_ - 1)[1], true_ids[:, :5]) < 0.99
    index.delete(np.arange(100)).tune(target_recall=0.9)
    assert index.recall_ >= 0.9


def test_few_rows_are_searched_exactly(data):
    index = HNSW(target_recall=0.95).fit(data[0][:60])
    assert index.ef_search_ == 60
    assert index.tune().recall_ == 1


@pytest.mark.parametrize("codes", [None, "uint8"])
def test_duplicates(codes):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(40, 6)), 50, axis=0)
    distances, ids = HNSW(codes=codes).fit(X).query(X[::50], k=50, ef=100)
    assert (distances <= 1e-6).mean() > 0.95
    assert all(len(set(row)) == 50 for row in ids)
    same = HNSW(codes=codes).fit(np.ones((500, 3)))
    distances, ids = same.query(np.ones((2, 3)), k=20, ef=30)
    assert (distances == 0).all()
    assert all(len(set(row)) == 20 for row in ids)


def test_zero_rows_and_cosine():
    X = np.vstack([np.eye(4), np.zeros((1, 4))])
    distances, ids = HNSW("cosine").fit(X).query(np.array([[2.0, 0, 0, 0]]), k=5)
    np.testing.assert_array_equal(ids[0], [0, 1, 2, 3, 4])
    np.testing.assert_allclose(distances[0], [0, 1, 1, 1, 1])


@pytest.mark.parametrize("codes", [None, "uint8"])
def test_pickle(data, codes):
    index = HNSW(codes=codes, target_recall=0.9).fit(data[0]).delete([3, 4])
    again = pickle.loads(pickle.dumps(index))
    assert repr(again) == repr(index)
    for a, b in zip(index.query(data[1], 10), again.query(data[1], 10), strict=True):
        np.testing.assert_array_equal(a, b)
    again.add(data[1])
    assert len(again) == len(index) + len(data[1])
    assert len(pickle.loads(pickle.dumps(HNSW()))) == 0
    assert clone(index).codes == codes


@pytest.mark.parametrize("codes", [None, "uint8"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_index_is_loaded_from_a_file(data, tmp_path, metric, codes):
    path = tmp_path / "index.safetensors"
    index = HNSW(metric, codes=codes, M=8, target_recall=0.9).fit(data[0]).delete([3, 4])
    index.save(path)
    again = HNSW.load(path)
    assert again.get_params() == index.get_params()
    assert repr(again) == repr(index)
    for a, b in zip(index.query(data[1], 10), again.query(data[1], 10), strict=True):
        np.testing.assert_array_equal(a, b)
    # Both have the same state after the same calls.
    index.add(data[1])
    again.add(data[1])
    for name, values in arrays(index).items():
        np.testing.assert_array_equal(values, arrays(again)[name], err_msg=name)
    assert list(tmp_path.iterdir()) == [path]


def corrupt(name, change):
    def apply(tensors, head):
        tensors[name] = change(tensors[name].copy())

    return apply


def set_element(at, value):
    def change(array):
        array[at] = value
        return array

    return change


def set_value(name, value):
    def apply(tensors, head):
        head["values"] = json.dumps(json.loads(head["values"]) | {name: value})

    return apply


def set_parameter(name, value):
    def apply(tensors, head):
        values = json.loads(head["values"])
        values["parameters"][name] = value
        head["values"] = json.dumps(values)

    return apply


CORRUPTIONS = {
    "link out of range": corrupt("links", set_element(3, 4_000_000)),
    "gap in a row": corrupt("links", set_element(0, 0xFFFFFFFF)),
    "links too short": corrupt("links", lambda a: a[:-1]),
    "vectors too short": corrupt("vectors", lambda a: a[:-1]),
    "vectors not finite": corrupt("vectors", set_element(5, np.nan)),
    "vectors of a wrong type": corrupt("vectors", lambda a: a.astype(np.float64)),
    "ids too short": corrupt("ids", lambda a: a[:-1]),
    "ids twice": corrupt("ids", lambda a: np.zeros_like(a)),
    "upper node out of range": corrupt("post_slots", set_element(0, 1_000_000)),
    "upper link out of range": corrupt("post_links", set_element(0, 1_000_000)),
    "upper node without a layer": corrupt("post_levels", set_element(0, 0)),
    "upper node too high": corrupt("post_levels", set_element(0, 255)),
    "upper nodes missing": corrupt("post_slots", lambda a: a[:-1]),
    "deleted too short": corrupt("deleted", lambda a: a[:-1]),
    "offsets too short": corrupt("code_offsets", lambda a: a[:-1]),
    "array missing": lambda tensors, head: tensors.pop("links"),
    "additional array": lambda tensors, head: tensors.update(more=np.zeros(1)),
    "top out of range": set_value("top", 100_000),
    "top negative": set_value("top", -1),
    "ground out of range": set_value("ground", 100_000),
    "ground a string": set_value("ground", "0"),
    "scale zero": set_value("code_scale", 0.0),
    "columns zero": set_value("n_features", 0),
    "columns wrong": set_value("n_features", 7),
    "seed negative": set_value("seed", -1),
    "ef a string": set_value("ef_search", "many"),
    "metric unknown": set_parameter("metric", "taxi"),
    "M too small": set_parameter("M", 1),
    "M another": set_parameter("M", 9),
    "parameter unknown": set_parameter("colour", "red"),
    "version unknown": lambda tensors, head: head.update(version="99"),
    "format unknown": lambda tensors, head: head.update(format="other"),
    "invalid JSON": lambda tensors, head: head.update(values="{"),
    "JSON is not an object": lambda tensors, head: head.update(values="[]"),
}


@pytest.fixture(scope="module")
def saved(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "index.safetensors"
    HNSW(codes="uint8", ef_construction=40).fit(data[0][:1000]).delete([1]).save(path)
    return path


@pytest.mark.parametrize("name", list(CORRUPTIONS))
def test_changed_files_raise_errors(saved, tmp_path, name):
    tensors = load_file(saved)
    with safe_open(saved, framework="numpy") as file:
        head = file.metadata()
    CORRUPTIONS[name](tensors, head)
    save_file(tensors, tmp_path / "changed", head)
    with pytest.raises((ValueError, TypeError)):
        HNSW.load(tmp_path / "changed")


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999])
def test_incomplete_files_raise_errors(saved, tmp_path, share):
    content = saved.read_bytes()
    (tmp_path / "cut").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="cut"):
        HNSW.load(tmp_path / "cut")


def test_invalid_input_raises(data, fitted):
    base, queries = data
    for value in [np.nan, np.inf]:
        bad = queries.copy()
        bad[2, 3] = value
        with pytest.raises(ValueError, match="X contains"):
            fitted.query(bad)
        with pytest.raises(ValueError, match="X contains"):
            HNSW().fit(bad)
    with pytest.raises(ValueError, match="X has values beyond"):
        HNSW().fit(queries * 1e19)
    with pytest.raises(ValueError, match="features"):
        fitted.query(queries[:, :5])
    with pytest.raises(ValueError, match="k must be at most"):
        fitted.query(queries, k=len(base) + 1)
    with pytest.raises(ValueError, match="k must be"):
        fitted.query(queries, k=0)
    with pytest.raises(TypeError, match="ef"):
        fitted.query(queries, ef=2.5)
    for parameters in [
        {"metric": "taxi"},
        {"M": 1},
        {"ef_construction": 0},
        {"ef_search": 0},
        {"target_recall": 1.5},
        {"codes": "uint4"},
    ]:
        with pytest.raises(ValueError, match=next(iter(parameters))):
            HNSW(**parameters).fit(base)
    with pytest.raises(ValueError, match="minimum of 1"):
        HNSW().fit(np.empty((0, 3)))
    with pytest.raises(Exception, match="not fitted"):
        HNSW().query(queries)


def test_kinds_of_arrays(data, fitted):
    base, queries = data
    expected = fitted.query(queries, k=3)
    wide = np.zeros((len(queries), 40))
    wide[:, ::2] = queries
    read_only = queries.astype(np.float32)
    read_only.flags.writeable = False
    for kind in [wide[:, ::2], np.asfortranarray(queries), read_only, queries.tolist()]:
        for a, b in zip(expected, fitted.query(kind, k=3), strict=True):
            np.testing.assert_array_equal(a, b)
    distances, ids = fitted.query(np.empty((0, 20)), k=3)
    assert distances.shape == ids.shape == (0, 3)
    again = HNSW(n_jobs=1).fit(np.asfortranarray(base.astype(np.float64)))
    for name, values in arrays(fitted).items():
        np.testing.assert_array_equal(values, arrays(again)[name], err_msg=name)


def test_arguments_are_copied(data):
    base = data[0][:500].copy()
    index = HNSW().fit(base)
    before = index.query(data[1])
    base[:] = 0
    for a, b in zip(before, index.query(data[1]), strict=True):
        np.testing.assert_array_equal(a, b)
