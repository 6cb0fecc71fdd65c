"""Neighbours of strings by edit distance and Hamming distance."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.neighbors import KNeighborsClassifier, NearestNeighbors
from support.nearest_rows import nearest


def edits(a, b):
    """Return Levenshtein's distance by the recursion."""
    line = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, line[0] = line[0], i
        for j, y in enumerate(b, 1):
            before, line[j] = line[j], min(before + (x != y), line[j] + 1, line[j - 1] + 1)
    return line[-1]


def differences(a, b):
    return abs(len(a) - len(b)) + sum(x != y for x, y in zip(a, b, strict=False))


WORD = st.one_of(st.text("ab", max_size=6), st.text(max_size=8), st.text("abc", min_size=60))


@settings(max_examples=100, deadline=None)
@given(st.lists(WORD, min_size=1, max_size=8), st.lists(WORD, min_size=1, max_size=4))
def test_distances_of_strings(words, queries):
    for metric, function in (("edit", edits), ("hamming", differences)):
        search = NearestNeighbors(n_neighbors=len(words), metric=metric).fit(words)
        distances, rows = search.kneighbors(queries)
        far, near = nearest([[function(q, w) for w in words] for q in queries], len(words))
        np.testing.assert_array_equal(distances, far)
        np.testing.assert_array_equal(rows, near)


def test_strings_in_estimators():
    words = ["cat", "cats", "catty", "dog", "dogs", "doggy"]
    kinds = ["cat", "cat", "cat", "dog", "dog", "dog"]
    for X in (words, np.array(words), pd.Series(words), pd.DataFrame({"word": words})):
        model = KNeighborsClassifier(3, metric="edit", weights="distance").fit(X, kinds)
        assert model.predict(["cots", "dugs"]).tolist() == ["cat", "dog"]
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(["cots"]).tolist() == ["cat"]
    assert model.score(None, kinds) == 1.0
    found = NearestNeighbors(radius=1, metric="edit").fit(words).radius_neighbors(["cat"])
    assert found[1][0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="expected strings"):
        model.predict([[1.0], [2.0]])
    with pytest.raises(ValueError, match="expected strings"):
        model.fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(words, kinds[:4])
    with pytest.raises(ValueError, match="algorithm: expected 'auto' or 'brute'"):
        KNeighborsClassifier(metric="hamming", algorithm="ball_tree").fit(words, kinds)
    lengths = NearestNeighbors(n_neighbors=2, metric=lambda a, b: abs(len(a) - len(b))).fit(words)
    assert lengths.kneighbors(["four"])[1].tolist() == [[1, 4]]
