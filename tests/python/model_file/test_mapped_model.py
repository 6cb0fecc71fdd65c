"""Mapped model files: same predictions and checks, memory shared by processes."""

from __future__ import annotations

import gc
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save, save_file

import spinney
from spinney import _core
from spinney.ensemble import (
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.linear_model import LinearRegression
from spinney.model_file._description import describe_state
from spinney.model_file._rebuilding import rebuild
from spinney.model_file.container import container_chunks, read_container, read_header

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 6))
y = X[:, 0] + RNG.normal(size=4000)


@pytest.fixture(scope="module")
def forest() -> Any:
    return RandomForestRegressor(20, random_state=0).fit(X, y)


@given(st.binary(max_size=300), st.integers(0, 2**32 - 1), st.integers(0, 9))
def test_checksum_of_few_bytes_equals_zlib(data: bytes, start: int, offset: int) -> None:
    array = np.frombuffer(data, dtype=np.uint8)[offset:]
    assert _core.crc32(start, array, 2) == zlib.crc32(data[offset:], start)


@pytest.mark.parametrize("n", [2**20 - 1, 2**20, 2**20 + 1, 3 * 2**20 + 77])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_checksum_of_many_bytes_equals_zlib(n: int, threads: int) -> None:
    array = np.random.default_rng(n).integers(0, 256, n).astype(np.uint8)
    assert _core.crc32(7, array, threads) == zlib.crc32(array.tobytes(), 7)


@pytest.mark.parametrize("mmap", [True, False, "auto"])
def test_mapped_model_equals_the_original(forest: Any, mmap: Any, tmp_path: Path) -> None:
    path = tmp_path / "model"
    for model in (
        forest,
        RandomForestClassifier(3, random_state=0).fit(X, y > 0),
        GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, y),
    ):
        spinney.save(model, path)
        again = spinney.load(path, mmap=mmap)
        path.unlink()  # the mapping keeps the data
        gc.collect()
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
        state = again.fitted_model().store.core.state()
        for name, array in model.fitted_model().store.core.state().items():
            np.testing.assert_array_equal(state[name], array, strict=True)


def test_changes_of_mapped_arrays_and_replaced_files_are_private(tmp_path: Path) -> None:
    path = tmp_path / "model"
    model = LinearRegression().fit(X, y)
    spinney.save(model, path)
    content = path.read_bytes()
    mapped = spinney.load(path, mmap=True)
    mapped.coef_[:] = 0
    assert path.read_bytes() == content
    np.testing.assert_array_equal(spinney.load(path).coef_, model.coef_)
    other = spinney.load(path, mmap=True)
    spinney.save(LinearRegression().fit(X, -y), path)
    np.testing.assert_array_equal(other.coef_, model.coef_)
    with pytest.raises(ValueError, match="mmap: expected True, False or 'auto', got 'always'"):
        spinney.load(path, mmap="always")  # type: ignore[arg-type]


def test_mapped_forest_continues_with_warm_start(tmp_path: Path) -> None:
    path = tmp_path / "model"
    X_train, y_train = X[:300], y[:300]
    first = RandomForestRegressor(3, warm_start=True, random_state=0).fit(X_train, y_train)
    spinney.save(first, path)
    mapped = spinney.load(path, mmap=True)
    for model in (first, mapped):
        model.set_params(n_estimators=6).fit(X_train, y_train)
    np.testing.assert_array_equal(mapped.predict(X), first.predict(X))


_CHILD = """
import sys, numpy as np, spinney
model = spinney.load(sys.argv[1], mmap=True)
model.predict(np.zeros((1, 6)))
facts, inside = {}, False
for line in open("/proc/self/smaps"):
    key, _, rest = line.partition(":")
    if "-" in key.split()[0]:
        inside = line.rstrip().endswith(sys.argv[1])
    elif inside and rest.strip().endswith("kB"):
        facts[key] = facts.get(key, 0) + int(rest.split()[0])
print(facts["Rss"], facts["Shared_Clean"], facts["Private_Dirty"])
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux's /proc")
def test_processes_share_the_pages(forest: Any, tmp_path: Path) -> None:
    path = tmp_path / "model"
    spinney.save(forest, path)
    mapped = spinney.load(path, mmap=True)
    run = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path)], capture_output=True, text=True, check=True
    )
    resident, shared, private = map(int, run.stdout.split())
    size = path.stat().st_size // 1024
    assert size > 1000
    assert resident >= 0.95 * size  # the checksum reads the whole file
    assert shared >= 0.95 * size
    assert private == 0
    assert mapped.predict(X[:1]) == forest.predict(X[:1])


@pytest.mark.parametrize("first", [True, False])
def test_arrays_of_a_forest_are_not_shared(forest: Any, first: bool) -> None:
    """Arrays that are checked once and then trusted must not be modifiable elsewhere."""
    description = describe_state([forest.fitted_model().store])
    nodes = description.nodes
    array = {"ref": [node["kind"] for node in nodes].index("array")}
    assert len(rebuild(nodes, description.tensors)[0]) == len(forest)
    if first:  # another object has the array before the forest
        other = next(node for node in nodes if node["kind"] == "dict")
        other["items"].append(["again", array])
    else:
        nodes[-1]["items"].append(array)
    with pytest.raises(ValueError, match="used elsewhere too"):
        rebuild(nodes, description.tensors)
    state = forest.fitted_model().store.core.state()
    with pytest.raises(ValueError, match="read-only"):
        _core.Forest(*forest.fitted_model().store.shape).restore(state)


def test_two_nodes_with_one_array_raise() -> None:
    first, second = np.arange(3.0), np.arange(3.0)
    description = describe_state([first, second])
    for node in description.nodes[:2]:
        node["numbers"] = "0"
    with pytest.raises(ValueError, match="node 1 is invalid"):
        rebuild(description.nodes, description.tensors)


@pytest.mark.parametrize("options", [{"compress": 3}, {"mmap_mode": "r"}, {"mmap_mode": "c"}])
def test_forests_with_joblib(forest: Any, options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model"
    load_options = {key: value for key, value in options.items() if key == "mmap_mode"}
    joblib.dump(forest, path, **{k: v for k, v in options.items() if k not in load_options})
    loaded = joblib.load(path, **load_options)
    np.testing.assert_array_equal(loaded.predict(X), forest.predict(X))


# ----- the container


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["?", "u1", "i2", "f2", "u4", "f4", "i8", "f8"]),
            st.lists(st.integers(0, 3), max_size=3),
        ),
        max_size=5,
    ),
    st.dictionaries(st.text(max_size=5), st.text(max_size=20), min_size=1, max_size=3),
    st.booleans(),
)
def test_container_reads_what_safetensors_writes(
    tmp_path_factory: Any, shapes: list[Any], texts: dict[str, str], mapped: bool
) -> None:
    path = tmp_path_factory.mktemp("container") / "file"
    arrays = {
        str(i): np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
        for i, (dtype, shape) in enumerate(shapes)
    }
    save_file(arrays, path, texts)
    container = read_container(path, mapped)
    assert container.texts == texts
    assert container.tensors.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(container.tensors[name], array, strict=True)
        assert container.tensors[name].flags.aligned
        assert container.tensors[name].flags.writeable
    assert read_header(path) == (texts, sum(array.nbytes for array in arrays.values()))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", ">i4"]
            ),
            st.lists(st.integers(0, 3), max_size=3),
        ),
        max_size=12,
    ),
    st.text(max_size=20),
)
def test_container_writes_the_bytes_of_safetensors(
    tmp_path_factory: Any, shapes: list[Any], text: str
) -> None:
    arrays = {
        str(i): np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
        for i, (dtype, shape) in enumerate(shapes)
    }
    written = b"".join(container_chunks({"text": text}, arrays))
    native = {name: a.astype(a.dtype.newbyteorder("=")) for name, a in arrays.items()}
    assert written == save(native, {"text": text})
    path = tmp_path_factory.mktemp("container") / "file"
    path.write_bytes(written)
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"text": text}
        for name, array in arrays.items():
            np.testing.assert_array_equal(file.get_tensor(name), array)


def test_too_many_arrays_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinney.model_file.container._LONGEST_HEADER", 1000)
    with pytest.raises(ValueError, match="100 arrays are too many"):
        list(container_chunks({}, {str(i): np.zeros(1) for i in range(100)}))


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"7",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"__metadata__": 3}',
        b'{"__metadata__": {"a": 3}}',
        b'{"a": 3}',
        b'{"a": {"dtype": "F128", "shape": [1], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [-1, -1], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [true], "data_offsets": [0, 8]}}',
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}}',
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [-8, 0]}}',
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [0]}}',
        b'{"a": {"dtype": "U8", "shape": [5], "data_offsets": [0, 5]}}',
        b'{"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},'
        b' "b": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}',
    ],
)
@pytest.mark.parametrize("mapped", [True, False])
def test_invalid_headers_raise(header: bytes, mapped: bool, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ValueError, match="not a model file, or incomplete"):
        read_container(path, mapped)


def test_unaligned_arrays_are_aligned(tmp_path: Path) -> None:
    path = tmp_path / "file"
    header = (
        b'{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},'
        b' "b": {"dtype": "F64", "shape": [1], "data_offsets": [1, 9]}}'
    )
    body = b"\x07" + np.array([0.5]).tobytes()
    path.write_bytes(len(header).to_bytes(8, "little") + header + body)
    for mapped in (True, False):
        tensors = read_container(path, mapped).tensors
        assert tensors["b"].flags.aligned
        assert (tensors["a"][0], tensors["b"][0]) == (7, 0.5)
