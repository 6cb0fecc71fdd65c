"""The Spambase data of the UCI repository."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["load_spam"]

_N_ROWS = 4601
_N_TRAIN = 3065  # the first rows are the training set of "The Elements of Statistical Learning"

_WORDS = (
    "make address all 3d our over remove internet order mail receive will people report addresses "
    "free business email you credit your font 000 money hp hpl george 650 lab labs telnet 857 data "
    "415 85 technology 1999 parts pm direct cs meeting original project re edu table conference"
)
_CHARACTERS = "; ( [ ! $ #"
_RUNS = "average longest total"

_FEATURE_NAMES = [
    *(f"word_freq_{word}" for word in _WORDS.split()),
    *(f"char_freq_{character}" for character in _CHARACTERS.split()),
    *(f"capital_run_length_{run}" for run in _RUNS.split()),
]


def load_spam(
    *,
    return_X_y: bool = False,
    as_frame: bool = False,
    split: Literal["train", "test"] | None = None,
) -> Any:
    """Load the spam data: 4,601 e-mails with 57 numeric features, spam or not.

    The data are UCI's Spambase (Hopkins, Reeber, Forman and Suermondt, 1999; CC BY 4.0); the
    attribute ``DESCR`` of the result has the details.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a bunch.
    as_frame : bool, default=False
        Return ``data`` as a pandas data frame and ``target`` as a pandas series.
    split : {"train", "test"} or None, default=None
        The 3,065 training rows or the 1,536 test rows of *The Elements of Statistical Learning*;
        None returns all rows, the training rows first.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        A bunch has

        - ``data``: (n_rows, 57) array of float64, or data frame;
        - ``target``: (n_rows,) array of 0 (no spam) and 1 (spam), or series;
        - ``feature_names``: list of 57 names;
        - ``target_names``: ``array(["nonspam", "spam"])``;
        - ``frame``: ``data`` and ``target`` side by side with ``as_frame=True``, else None;
        - ``train_rows``, ``test_rows``: the row indexes of both parts in the whole table;
        - ``DESCR``: source, licence and meaning of the columns.

    Examples
    --------
    >>> from spinney.datasets import load_spam
    >>> X, y = load_spam(return_X_y=True, split="train")
    >>> X.shape, int(y.sum())
    ((3065, 57), 1218)
    """
    train_rows, test_rows = np.arange(_N_TRAIN), np.arange(_N_TRAIN, _N_ROWS)
    parts = {None: slice(None), "train": slice(_N_TRAIN), "test": slice(_N_TRAIN, None)}
    if split not in parts:
        raise ValueError(f"split must be 'train', 'test' or None, got {split!r}")

    values, spam = _read()
    data: Any = values[parts[split]]
    target: Any = spam[parts[split]]
    frame = None
    if as_frame:
        frame = _as_frame(data, target)
        data, target = frame[_FEATURE_NAMES], frame["target"]
    if return_X_y:
        return data, target

    # Imported here: optional, or for start-up time.
    from sklearn.utils import Bunch

    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=list(_FEATURE_NAMES),
        target_names=np.array(["nonspam", "spam"]),
        train_rows=train_rows,
        test_rows=test_rows,
        DESCR=(files(__package__) / "SPAM.txt").read_text(encoding="utf-8"),
    )


def _read() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Read the bundled file; SPAM.txt describes its format."""
    path = files(__package__) / "spam.npz"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        low, middle, high = arrays["planes"].astype(np.int64)
        values = (low + 256 * middle + 65536 * high) / arrays["scale"][:, np.newaxis]
        spam = np.unpackbits(arrays["spam"], count=_N_ROWS)
    return np.ascontiguousarray(values.T), spam.astype(np.int64)


def _as_frame(data: NDArray[np.float64], target: NDArray[np.int64]) -> Any:
    try:
        # Imported here: optional, or for start-up time.
        import pandas as pd
    except ImportError as error:
        raise ImportError("load_spam(as_frame=True) needs pandas: pip install pandas") from error
    frame = pd.DataFrame(data, columns=_FEATURE_NAMES)
    frame["target"] = target
    return frame
