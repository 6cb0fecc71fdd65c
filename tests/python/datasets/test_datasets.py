"""The bundled datasets."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from spinney.datasets import load_spam


def test_shape_names_and_description() -> None:
    spam = load_spam()
    assert spam.data.shape == (4601, 57)
    assert spam.data.dtype == np.float64
    assert spam.data.flags.c_contiguous
    assert spam.target.shape == (4601,)
    assert spam.target.sum() == 1813
    assert spam.target_names.tolist() == ["nonspam", "spam"]
    assert len(set(spam.feature_names)) == 57
    assert spam.feature_names[:1] == ["word_freq_make"]
    assert spam.feature_names[48:] == [
        *("char_freq_;", "char_freq_(", "char_freq_[", "char_freq_!", "char_freq_$", "char_freq_#"),
        *(f"capital_run_length_{run}" for run in ("average", "longest", "total")),
    ]
    for word in ("Hopkins", "Reeber", "Forman", "Suermondt", "CC BY 4.0", "10.24432/C53G6X"):
        assert word in spam.DESCR


def test_values_are_exact() -> None:
    """Every value is the float64 of its decimal text; the checksum is known."""
    X, y = load_spam(return_X_y=True)
    assert np.array_equal(X, np.array([[float(f"{value:.3f}") for value in row] for row in X]))
    # Extreme values as documented by the source.
    george = load_spam().feature_names.index("word_freq_george")
    assert X[:, george].max() == 33.33
    assert X[:, -3:].max(axis=0).tolist() == [1102.5, 9989.0, 15841.0]
    assert X[:, -3:].min(axis=0).tolist() == [1.0, 1.0, 1.0]
    thousandths = np.rint(X * 1000).astype("<i8")
    digest = hashlib.sha256(thousandths.tobytes() + y.astype("u1").tobytes()).hexdigest()
    assert digest == "005d3d4a9ba35f70fbb8008ce1151aa875504bb282b847db9b5db65fd2964bf9"


def test_train_and_test_split_of_the_book() -> None:
    both_parts, train, test = load_spam(), load_spam(split="train"), load_spam(split="test")
    assert len(train.data) == 3065
    assert len(test.data) == 1536
    assert np.array_equal(both_parts.data[both_parts.train_rows], train.data)
    assert np.array_equal(both_parts.target[both_parts.test_rows], test.target)
    assert train.target.sum() == 1218
    assert test.target.sum() == 595


def test_spam_as_frame() -> None:
    pd = pytest.importorskip("pandas")
    spam = load_spam(as_frame=True, split="test")
    assert isinstance(spam.data, pd.DataFrame)
    assert isinstance(spam.target, pd.Series)
    assert spam.data.columns.tolist() == spam.feature_names
    assert spam.frame.columns.tolist() == [*spam.feature_names, "target"]
    assert np.array_equal(spam.data.to_numpy(), load_spam(split="test").data)


def test_invalid_split_raises() -> None:
    with pytest.raises(ValueError, match="split must be"):
        load_spam(split="validation")  # type: ignore[arg-type]
