"""Writing and reading of model files: descriptions, paths, pipes and failed writes."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinney
from spinney.ensemble import RandomForestClassifier
from spinney.io import read_about
from spinney.neighbors import HNSW
from spinney.tree import DecisionTreeClassifier
from support.saved_models import CLASSES, QUERIES, X, assert_same


def test_about_is_read_without_arrays(tmp_path: Path) -> None:
    model = RandomForestClassifier(7, random_state=1).fit(X, CLASSES)
    spinney.save(model, tmp_path / "forest", training={"target": "bought"})
    about = read_about(tmp_path / "forest")
    assert about["class"] == "spinney.ensemble.RandomForestClassifier"
    assert about["changed"] == ["n_estimators", "random_state"]
    assert about["parameters"]["n_estimators"] == "7"
    assert about["classes"] == ["no", "yes"]
    assert about["n_features"] == 3
    assert about["training"] == {"target": "bought"}
    assert about["versions"]["spinney"] == spinney.__version__


def test_training_facts_become_json(tmp_path: Path) -> None:
    path = tmp_path / "tree"
    facts = {"rows": np.int64(2), "error": np.float32(np.nan), "by": {np.str_("a"): np.arange(2)}}
    spinney.save(DecisionTreeClassifier(), path, training=facts)
    assert read_about(path)["training"] == {"rows": 2, "error": None, "by": {"a": [0, 1]}}
    for invalid, message in (
        ({"a": [1, {2}]}, r"training\['a'\]\[1\]: expected a JSON value, got a set"),
        ({(1, 2): 3}, "training: expected strings as keys, got a tuple"),
    ):
        with pytest.raises(TypeError, match=message):
            spinney.save(DecisionTreeClassifier(), path, training=invalid)


def test_paths_as_bytes(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "model")
    for model in (DecisionTreeClassifier(), HNSW().fit(X)):
        model.save(path)  # type: ignore[arg-type]
        assert type(model).load(path).get_params() == model.get_params()  # type: ignore[arg-type]
    spinney.save(DecisionTreeClassifier(max_depth=3), path)  # type: ignore[arg-type]
    assert spinney.load(path, mmap=np.False_).max_depth == 3  # type: ignore[arg-type]
    assert spinney.load(path, mmap=np.True_).max_depth == 3  # type: ignore[arg-type]
    assert spinney.describe(path)["changed"] == ["max_depth"]  # type: ignore[arg-type]


def test_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier(max_depth=1), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        spinney.save(DecisionTreeClassifier(max_depth=2), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_longest_file_names_of_the_system(tmp_path: Path) -> None:
    for name in ("m" * 255, "ü" * 127, "木" * 85):
        spinney.save(DecisionTreeClassifier(), tmp_path / name)
        spinney.load(tmp_path / name)


def test_save_keeps_permissions_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "model", tmp_path / "link"
    spinney.save(DecisionTreeClassifier(), path)
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    path.chmod(0o640)
    link.symlink_to(path)
    spinney.save(DecisionTreeClassifier(max_depth=2), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert spinney.load(path).max_depth == 2
    with pytest.raises(IsADirectoryError, match="folder"):
        spinney.save(DecisionTreeClassifier(), tmp_path)
    with pytest.raises(FileNotFoundError, match="cannot write"):
        spinney.save(DecisionTreeClassifier(), tmp_path / "nowhere" / "model")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("model", [DecisionTreeClassifier(), HNSW()], ids=["tree", "graph"])
def test_save_writes_to_pipes(model: Any, named: bool, tmp_path: Path) -> None:
    model = model.fit(X, CLASSES)
    model.save(tmp_path / "expected")
    received: list[bytes] = []
    if named:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
        reader.start()
        model.save(path)
        reader.join()
        assert stat.S_ISFIFO(path.stat().st_mode)
        assert sorted(os.listdir(tmp_path)) == ["expected", "pipe"]
    else:  # like process substitution of a shell: the path is not a file name
        read_end, write_end = os.pipe()
        with open(read_end, "rb") as stream:
            reader = threading.Thread(target=lambda: received.append(stream.read()))
            reader.start()
            model.save(f"/dev/fd/{write_end}")
            os.close(write_end)
            reader.join()
    (tmp_path / "received").write_bytes(received[0])
    loaded = type(model).load(tmp_path / "received")
    assert_same(model, loaded, QUERIES)


def test_failed_writes_raise_and_keep_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "model"
    tree = DecisionTreeClassifier().fit(X, CLASSES)
    spinney.save(tree, path)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # like a full disk
    try:
        with pytest.raises(OSError, match=f"cannot write to {path}: ") as caught:
            spinney.save(tree, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    flush = os.fsync

    def fail_fsync(*, for_folders: bool) -> None:
        def fsync(handle: int) -> None:
            if stat.S_ISDIR(os.fstat(handle).st_mode) == for_folders:
                raise OSError(errno.EIO, "the disk failed")
            flush(handle)

        monkeypatch.setattr(os, "fsync", fsync)

    fail_fsync(for_folders=False)
    with pytest.raises(OSError, match="the disk failed"):
        spinney.save(tree, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]
    fail_fsync(for_folders=True)  # not every system can flush folders
    spinney.save(tree, path)
