"""Compiled C files against the models that they export."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

from spinney import export_c
from spinney.ensemble import GradientBoostingRegressor, RandomForestClassifier
from spinney.neighbors import KNeighborsClassifier
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor
from support.export_models import (
    CATEGORICAL,
    all_models,
    fit_on_missing,
    models_of_several_classes,
    rows_with_missing,
    table,
    table_models,
    takes_missing,
    unsupported,
)

_COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(_COMPILER is None, reason="there is no C compiler (cc)")
_STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]


def compile_all(codes: list[str], folder: Path) -> ctypes.CDLL:
    """Compile files into one library; every warning is an error."""
    paths = []
    for number, code in enumerate(codes):
        paths.append(folder / f"model{number}.c")
        paths[-1].write_text(code, encoding="utf-8")
    library = folder / "models.so"
    command = [str(_COMPILER), *_STRICT, "-shared", "-fPIC", *map(str, paths), "-lm", "-o"]
    process = subprocess.run([*command, str(library)], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return ctypes.CDLL(str(library))


class CModel:
    """Calls the functions of one exported model in a library."""

    def __init__(self, library: ctypes.CDLL, prefix: str, model: Any) -> None:
        self.library, self.prefix, self.model = library, prefix, model

    def values_per_row(self, name: str, X: Any, kind: Any) -> Any:
        """Call a function that returns one value per row."""
        call = getattr(self.library, self.prefix + name)
        call.restype = kind
        return [call(row.ctypes.data_as(ctypes.c_void_p)) for row in X]

    def arrays_per_row(self, name: str, X: Any, width: int) -> Any:
        """Call a function that fills an array per row."""
        call = getattr(self.library, self.prefix + name)
        call.restype = None
        out = np.full((len(X), width), np.nan)
        for row, to in zip(X, out, strict=True):
            pointers = (a.ctypes.data_as(ctypes.c_void_p) for a in (row, to))
            call(*pointers)
        return out

    def check(self, X: Any, rows: Any = None) -> None:
        """Compare all outputs; `rows` is X with codes in place of categories."""
        rows = np.ascontiguousarray(X if rows is None else rows, dtype=np.float64)
        predicted = self.model.predict(X)
        if predicted.ndim == 2:
            filled = self.arrays_per_row("predict", rows, predicted.shape[1])
            np.testing.assert_allclose(filled, predicted, rtol=1e-14, atol=1e-13)
            return
        if predicted.dtype.kind in "UO":
            names = self.values_per_row("predict", rows, ctypes.c_char_p)
            np.testing.assert_array_equal([name.decode() for name in names], predicted)
        else:
            numbers = self.values_per_row("predict", rows, ctypes.c_double)
            if predicted.dtype.kind == "f":
                np.testing.assert_allclose(numbers, predicted, rtol=1e-14, atol=1e-13)
            else:
                np.testing.assert_array_equal(numbers, predicted)
        if not is_classifier(self.model):
            return
        index = self.values_per_row("predict_index", rows, ctypes.c_int)
        np.testing.assert_array_equal(self.model.classes_[index], predicted)
        if hasattr(self.model, "predict_proba"):
            probabilities = self.model.predict_proba(X)
            filled = self.arrays_per_row("predict_proba", rows, probabilities.shape[1])
            np.testing.assert_allclose(filled, probabilities, rtol=1e-13, atol=1e-15)


def c_models() -> list[tuple[Any, str]]:
    """Return all models that `export_c` supports."""
    return [case for case in all_models() if not type(case[0]).__name__.startswith("KNeighbors")]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> list[CModel]:
    models = [fit_on_missing(*case, dtype=np.float64) for case in c_models()]
    codes = [export_c(model, prefix=f"m{i}_") for i, model in enumerate(models)]
    library = compile_all(codes, tmp_path_factory.mktemp("c"))
    return [CModel(library, f"m{i}_", model) for i, model in enumerate(models)]


@needs_compiler
@pytest.mark.parametrize(
    "number", range(len(c_models())), ids=[f"{type(m).__name__}-{y}" for m, y in c_models()]
)
def test_every_model_predicts_the_same(compiled: list[CModel], number: int) -> None:
    model = compiled[number]
    missing = 0.3 if takes_missing(model.model) else 0.0
    model.check(rows_with_missing(300, seed=5, missing=missing).astype(np.float64))
    model.check(np.random.default_rng(3).normal(size=(100, 5)))


@needs_compiler
def test_sums_over_trees_have_the_same_bits(compiled: list[CModel]) -> None:
    X = rows_with_missing(300, seed=6).astype(np.float64)
    n_checked = 0
    for model in compiled:
        name = type(model.model).__name__
        if name in ("RandomForestClassifier", "ExtraTreesClassifier", "DecisionTreeClassifier"):
            expected = model.model.predict_proba(X)
            actual = model.arrays_per_row("predict_proba", X, expected.shape[1])
        elif name in ("RandomForestRegressor", "GradientBoostingRegressor"):
            expected = model.model.predict(X)
            if expected.ndim == 2 or model.model.get_params().get("loss") in (
                "poisson",
                "cross_entropy",
            ):
                continue
            actual = np.array(model.values_per_row("predict", X, ctypes.c_double))
        else:
            continue
        n_checked += 1
        np.testing.assert_array_equal(actual, expected)
    assert n_checked > 8


@needs_compiler
def test_tables_with_categories_predict_the_same(tmp_path: Path) -> None:
    models = table_models()
    codes = [export_c(model, prefix=f"t{i}_") for i, model in enumerate(models)]
    library = compile_all(codes, tmp_path)
    frame = table(400, unseen=True, seed=9)
    for i, model in enumerate(models):
        code_of = getattr(library, f"t{i}_category_code")
        code_of.restype = ctypes.c_double
        rows = frame.copy()
        for column, name in enumerate(frame.columns):
            if name in CATEGORICAL:
                values = models[0].categories_[column].tolist()  # all are fitted on the same table
                codes_of_values = [code_of(column, str(value).encode()) for value in values]
                assert codes_of_values == list(range(len(values)))
                codes_by_value = {
                    v: code_of(column, str(v).encode()) for v in frame[name].dropna().unique()
                }
                rows[name] = frame[name].map(codes_by_value).astype(float)
        assert np.isnan(code_of(1, b"never seen"))
        assert np.isnan(code_of(0, b"red"))
        assert np.isnan(code_of(77, b"red"))
        CModel(library, f"t{i}_", model).check(frame, rows)
        rows.loc[rows["town"].isna(), "town"] = 1e9  # an invalid code is a missing value
        CModel(library, f"t{i}_", model).check(frame, rows.fillna({"colour": -1.0}))


@needs_compiler
def test_several_outputs_of_classes_predict_the_same(tmp_path: Path) -> None:
    models = models_of_several_classes()[:-1]  # without nearest neighbours
    codes = [export_c(model, prefix=f"s{i}_") for i, model in enumerate(models)]
    library = compile_all(codes, tmp_path)
    X = rows_with_missing(100, seed=5).astype(np.float64)
    for i, model in enumerate(models):
        probabilities = np.concatenate(model.predict_proba(X), axis=1)
        filled = CModel(library, f"s{i}_", model).arrays_per_row(
            "predict_proba", X, probabilities.shape[1]
        )
        np.testing.assert_array_equal(filled, probabilities)
        is_text = model.classes_[0].dtype.kind == "U"
        out = ((ctypes.c_char_p if is_text else ctypes.c_double) * 2)()
        index = (ctypes.c_int * 2)()
        for row, expected in zip(X, model.predict(X), strict=True):
            pointer = row.ctypes.data_as(ctypes.c_void_p)
            getattr(library, f"s{i}_predict")(pointer, out)
            actual = [value.decode() if is_text else value for value in out]
            assert actual == list(expected)
            getattr(library, f"s{i}_predict_index")(pointer, index)
            assert [c[k] for c, k in zip(model.classes_, index, strict=True)] == list(expected)


@needs_compiler
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_small_random_trees_predict_the_same(
    data: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cell = st.sampled_from([np.nan, -1e300, -1.0, -0.0, 0.0, 5e-324, 0.1, 1.0, 1 + 1e-15, 1e308])
    n = data.draw(st.integers(2, 12))
    X = np.array(data.draw(st.lists(st.tuples(cell, cell), min_size=n, max_size=n)))
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    X_test = np.array(data.draw(st.lists(st.tuples(cell, cell), min_size=1)))
    models: list[Any] = [DecisionTreeClassifier(random_state=0), DecisionTreeRegressor()]
    models = [model.fit(X, y) for model in models]
    codes = [export_c(model, prefix=f"h{i}_") for i, model in enumerate(models)]
    library = compile_all(codes, tmp_path_factory.mktemp("small"))
    for i, model in enumerate(models):
        CModel(library, f"h{i}_", model).check(X_test)


@needs_compiler
def test_names_are_escaped_in_comments_and_strings(tmp_path: Path) -> None:
    import pandas as pd

    names = ["*/ #error \\", "??/\n", 'quo"te\\', "/* begins /*/ *//*", "????/", "back\\\n"]
    X = pd.DataFrame(np.arange(60.0).reshape(10, 6), columns=names)
    y = np.array(['a"\\', "?*/"])[[0, 1] * 5]
    model = DecisionTreeClassifier().fit(X, y)
    library = compile_all([export_c(model)], tmp_path)
    CModel(library, "", model).check(X)


@pytest.mark.parametrize("case", unsupported(), ids=lambda case: type(case[0]).__name__)
def test_unsupported_models_raise_and_are_named(case: Any) -> None:
    model, message = case
    with pytest.raises(TypeError, match=f"export_c: cannot write {type(model).__name__}: "):
        export_c(model)
    with pytest.raises(TypeError, match=message):
        export_c(model)


def test_unsupported_options_and_unfitted_models_raise() -> None:
    model = KNeighborsClassifier(1).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="does not support nearest neighbours"):
        export_c(model)
    with pytest.raises(NotFittedError):
        export_c(RandomForestClassifier())
    large_labels = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 2**53 + 1])
    with pytest.raises(TypeError, match="integers that a double cannot represent"):
        export_c(large_labels)
    booster = GradientBoostingRegressor(n_estimators=1).fit([[0.0], [1.0]], [0.0, 1.0])
    for prefix in ("1a", "a b", "a-", None):
        with pytest.raises(ValueError, match="prefix: expected the beginning of a C identifier"):
            export_c(booster, prefix=prefix)
