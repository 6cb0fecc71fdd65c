"""Gower's distance for tables with numbers and categories."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from spinney.neighbors import KNeighborsClassifier, NearestNeighbors


def gower(a, b, ranges, weights):
    """Return Gower's distance by its definition; `ranges` has None for categories."""
    total = weight_of_all = 0.0
    for x, y, spread, weight in zip(a, b, ranges, weights, strict=True):
        if x is None or y is None:
            continue
        is_scaled = spread is not None and spread > 0
        difference = abs(x - y) / spread if is_scaled else float(x != y)
        total += weight * difference
        weight_of_all += weight
    return total / weight_of_all if weight_of_all > 0 else 1.0


def ranges_of(rows, is_number):
    out = []
    for j, number in enumerate(is_number):
        present = [row[j] for row in rows if row[j] is not None]
        out.append((max(present) - min(present) if present else 0) if number else None)
    return out


def frame_of(rows, is_number):
    columns = {}
    for j, number in enumerate(is_number):
        values = [row[j] for row in rows]
        if number:
            columns[f"c{j}"] = np.array([np.nan if v is None else v for v in values], dtype=float)
        else:
            columns[f"c{j}"] = pd.Series(values, dtype="category")
    return pd.DataFrame(columns)


NUMBER = st.one_of(st.none(), st.integers(-5, 5).map(lambda i: i / 2), st.floats(-1e9, 1e9))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_gower_against_its_definition(data):
    is_number = data.draw(st.lists(st.booleans(), min_size=1, max_size=5))

    def rows(letters, n):
        category = st.one_of(st.none(), st.sampled_from(letters))
        row = st.tuples(*(NUMBER if number else category for number in is_number))
        return data.draw(st.lists(row, min_size=n, max_size=12))

    fit, queries = rows("abc", 2), rows("abcxy", 1)  # x and y are unseen
    weights = data.draw(
        st.one_of(
            st.none(),
            st.lists(
                st.sampled_from([0.5, 1.0, 2.0]), min_size=len(is_number), max_size=len(is_number)
            ),
        )
    )
    params = None if weights is None else {"weights": weights}
    search = NearestNeighbors(n_neighbors=len(fit), metric="gower", metric_params=params)
    search.fit(frame_of(fit, is_number))
    distances, found = search.kneighbors(frame_of(queries, is_number))
    ranges = ranges_of(fit, is_number)
    given_weights = weights or [1.0] * len(is_number)
    for i, query in enumerate(queries):
        expected = np.array([gower(query, row, ranges, given_weights) for row in fit])
        np.testing.assert_allclose(distances[i], np.sort(expected), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(expected[found[i]], distances[i], rtol=1e-9, atol=1e-12)
        ties = distances[i][:-1] == distances[i][1:]
        assert (found[i][:-1][ties] < found[i][1:][ties]).all()
    limit = float(np.median(distances))
    far, near = search.radius_neighbors(frame_of(queries, is_number), radius=limit)
    for i in range(len(queries)):
        assert sorted(near[i]) == sorted(found[i][distances[i] <= limit])
        assert (far[i] <= limit).all()


def mixed_table(n=400, seed=11):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["cook", "clerk", "nurse"], n),
            "city": pd.Categorical(rng.choice(["Ulm", "Bonn"], n)),
            "income": rng.lognormal(size=n),
            "one": np.ones(n),
        }
    )
    y = (frame["job"] == "cook").to_numpy() | (frame["age"] > 60).to_numpy()
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "job"] = None
    return frame, y


def test_gower_on_data_frames():
    frame, y = mixed_table()
    model = KNeighborsClassifier(9, metric="gower")
    assert cross_val_score(model, frame, y, cv=5).mean() > 0.8
    model.fit(frame[:300], y[:300])
    expected = model.kneighbors(frame[300:])
    polars = clone(model).fit(pl.from_pandas(frame[:300]), y[:300])
    for found, wanted in zip(polars.kneighbors(pl.from_pandas(frame[300:])), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame[300:]), model.predict(frame[300:]))
    assert again.feature_names_in_.tolist() == list(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[300:].rename(columns={"age": "years"}))
    # Leave-one-out predictions.
    assert (model.kneighbors()[1] != np.arange(300)[:, None]).all()


def test_gower_parameters():
    frame, y = mixed_table()
    numbers = frame[["age", "income"]].to_numpy()
    only_age = {"weights": [1.0, 0.0]}
    model = KNeighborsClassifier(3, metric="gower", metric_params=only_age).fit(numbers, y)
    distances, _ = model.kneighbors(numbers[:5])
    present = numbers[:, 0][~np.isnan(numbers[:, 0])]
    expected = np.abs(numbers[:5, :1] - numbers[:, 0]) / (present.max() - present.min())
    expected[np.isnan(expected)] = 1.0
    np.testing.assert_allclose(distances, np.sort(expected, axis=1)[:, :3], atol=1e-12)
    codes = NearestNeighbors(
        n_neighbors=1, metric="gower", metric_params={"categorical_features": [0]}
    ).fit([[1, 0.0], [2, 1.0], [9, 1.0]])
    assert codes.kneighbors([[8, 0.0]])[0].item() == 0.5  # an unknown category, an equal number
    by_spread = NearestNeighbors(n_neighbors=1, metric="gower", metric_params={"scale": "std"})
    by_spread.fit([[1.0, 0.0], [2.0, 0.0], [6.0, 0.0]])
    expected = 1.0 / np.std([1.0, 2.0, 6.0]) / 2  # the constant column has distance 0
    np.testing.assert_allclose(by_spread.kneighbors([[7.0, 0.0]])[0], [[expected]])
    for params, text in (
        ({"scale": "inch"}, "scale 'range' or 'std'"),
        ({"weights": [1.0]}, "expected weights of shape"),
        ({"weights": [0.0, 0.0]}, "at least one positive weight"),
        ({"weights": [1.0, -1.0]}, "weights >= 0"),
        ({"weigths": [1.0, 1.0]}, "weigths"),
    ):
        with pytest.raises(ValueError, match=text):
            KNeighborsClassifier(metric="gower", metric_params=params).fit(numbers, y)
    with pytest.raises(ValueError, match="infinity"):
        KNeighborsClassifier(metric="gower").fit([[np.inf], [1.0]], [0, 1])


def test_gower_of_huge_and_tiny_values():
    for unit in (1e308, 1e-310):
        X = np.array([[-1.0], [0.0], [1.0]]) * unit
        search = NearestNeighbors(n_neighbors=3, metric="gower").fit(X)
        distances, rows = search.kneighbors(X[:1])
        np.testing.assert_allclose(distances, [[0.0, 0.5, 1.0]])
        assert rows.tolist() == [[0, 1, 2]]
