"""Means, quantiles and draws over all rows of a fit, wherever they are.

Rows may lie with several workers. Everything here is found from sums of integers, so that it is
the same, to the last bit, for any number of workers and any order of rows. One worker alone counts
in the same way.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.distributed.exchange import Exchange

__all__ = ["RowNumbers", "Totals", "row_keys"]

_DIGIT = 16  # bits of a number that are found at a time
_MOST_REPEATED = 2**32  # rows whose sums keep all bits of a float64
_SHORT_DIGIT = 8  # where many numbers are found at once


class RowNumbers:
    """Numbers, in the whole table, of the rows that a worker has.

    Parameters
    ----------
    stretches : sequence of (int, int)
        Where each stretch of rows that follow each other begins, here and in the whole table,
        ascending. Empty: all rows are here.
    """

    def __init__(self, stretches: Sequence[tuple[int, int]] = ()) -> None:
        self.stretches = [(int(begin), int(number)) for begin, number in stretches]

    def of(self, n_rows: int) -> NDArray[np.uint64]:
        """Numbers of the first n rows."""
        numbers = np.arange(n_rows, dtype=np.uint64)
        if not self.stretches:
            return numbers
        ends = [begin for begin, _ in self.stretches[1:]] + [n_rows]
        for (begin, number), end in zip(self.stretches, ends, strict=True):
            numbers[begin:end] = np.arange(number, number + max(0, end - begin), dtype=np.uint64)
        return numbers


class Totals:
    """Facts about all rows.

    Parameters
    ----------
    exchange : Exchange or None
        The other workers; None: there are none.
    """

    def __init__(self, exchange: Exchange | None = None) -> None:
        self.exchange = exchange

    @property
    def shared(self) -> bool:
        """Whether other workers have rows, too."""
        return self.exchange is not None

    def add(self, values: Any) -> Any:
        """Sum integers over the workers."""
        values = np.array(values, dtype=np.int64, ndmin=1)
        if self.exchange is not None:
            self.exchange.add(values)
        return values

    def largest(self, values: Any) -> Any:
        """Find the largest of each number over the workers."""
        values = np.array(values, dtype=np.float64, ndmin=1)
        if self.exchange is not None:
            self.exchange.max(values)
        return values

    def count(self, n: Any) -> int:
        """Sum one integer."""
        return int(self.add(n)[0])

    def any(self, flag: bool) -> bool:
        """Whether it is so at any worker."""
        return self.count(int(flag)) > 0

    def gather(self, thing: Any) -> list[Any]:
        """Give what each worker has to tell, by rank."""
        if self.exchange is None:
            return [thing]
        told = self.exchange.gather(pickle.dumps(thing))
        told.reverse()
        return [pickle.loads(told.pop()) for _ in range(len(told))]  # none is there twice for long

    def extremes(self, values: Any) -> tuple[Any, Any]:
        """Smallest and largest value of each column, (n_columns,)."""
        columns = _columns(values)
        low = columns.min(axis=0, initial=np.inf)
        high = columns.max(axis=0, initial=-np.inf)
        if self.exchange is None:
            return low, high
        both = self.largest(np.concatenate([-low, high]))
        return -both[: len(low)], both[len(low) :]

    def repetitions(self, weights: Any) -> Any:
        """Give weights as numbers of repeated rows; None unless all are whole and not too many."""
        if weights is None or self.any(
            bool(((weights != np.floor(weights)) | (weights >= 2**31)).any())
        ):
            return None
        times = weights.astype(np.int64)
        return times if self.count(times.sum()) <= _MOST_REPEATED else None

    def sums(self, values: Any, times: Any = None) -> NDArray[np.float64]:
        """Sum of each column of finite numbers, (n_columns,): right to nearly all bits.

        Rows count `times` times (ndarray of int64); None: once.
        """
        columns = _columns(np.asarray(values, dtype=np.float64))
        n = max(1, self.count(len(columns) if times is None else times.sum()))
        low, high = self.extremes(columns)
        bits = min(50, 62 - n.bit_length())
        out = np.zeros(columns.shape[1])
        for k, largest in enumerate(np.maximum(np.abs(low), np.abs(high))):
            if not 0 < largest < np.inf:
                self.add([0, 0])
                continue
            scale = float(np.exp2(np.clip(bits - np.frexp(largest)[1], -900, 900)))
            scaled = columns[:, k] * scale
            whole = np.rint(scaled)
            rest = np.rint((scaled - whole) * 2.0**bits)
            both = [part.astype(np.int64) for part in (whole, rest)]
            both = both if times is None else [part * times for part in both]
            parts = self.add([int(part.sum()) for part in both])
            out[k] = (int(parts[0]) * 2**bits + int(parts[1])) / 2**bits / scale
        return out

    def mean(self, values: Any, weights: Any) -> NDArray[np.float64]:
        """Weighted mean of each column, (n_columns,)."""
        if weights is None:
            return self.sums(values) / self.count(len(values))
        times = self.repetitions(weights)
        if times is not None:
            return self.sums(values, times) / self.count(times.sum())
        columns = _columns(values)
        return self.sums(columns * weights[:, np.newaxis]) / self.sums(weights)

    def class_weights(self, codes: Any, weights: Any, n_classes: int) -> NDArray[np.float64]:
        """Weight of each class."""
        if weights is None:
            counts = np.bincount(codes, minlength=n_classes)
            return np.asarray(self.add(counts).astype(np.float64))
        return np.array(
            [self.sums(np.where(codes == k, weights, 0.0))[0] for k in range(n_classes)]
        )

    def smallest_keys(self, keys: Any, weights: Any, wanted: Any) -> tuple[int, int]:
        """Find the smallest key with at least so much weight at or below it.

        Parameters
        ----------
        keys : ndarray of uint64
            One for each row.
        weights : ndarray of int64 or None
            Whole weights; None: 1 each.
        wanted : int or float
            At most the weight of all rows.

        Returns
        -------
        key : int
            The smallest such key.
        below : int
            Weight at or below it.
        """
        found, below = 0, 0
        for shift in range(64 - _DIGIT, -1, -_DIGIT):
            digits = ((keys >> np.uint64(shift)) & np.uint64(2**_DIGIT - 1)).astype(np.intp)
            if weights is None:
                counts = np.bincount(digits, minlength=2**_DIGIT)
            else:
                counts = np.zeros(2**_DIGIT, dtype=np.int64)
                np.add.at(counts, digits, weights)
            counts = self.add(counts)
            so_far = below + np.cumsum(counts)
            enough = np.flatnonzero((so_far >= wanted) & (counts > 0))
            digit = int(enough[0]) if len(enough) else int(np.flatnonzero(counts)[-1])
            below = int(so_far[digit] - counts[digit])
            found |= digit << shift
            kept = digits == digit
            keys = keys[kept]
            weights = None if weights is None else weights[kept]
        return found, below + int(counts[digit])

    def key_limits(self, keys: Sequence[Any], wanted: Any) -> NDArray[np.uint64]:
        """Find limits with so many keys of all workers below them.

        Parameters
        ----------
        keys : sequence of ndarray of uint64
            Several lists of keys, ascending. Those of a list are different, on all workers.
        wanted : ndarray of int, (n_lists, n_limits)
            How many keys of the list are to be below each limit.

        Returns
        -------
        ndarray of uint64, (n_lists, n_limits)
            The largest limits with no more keys below them.
        """
        limits = np.zeros(wanted.shape, dtype=np.uint64)
        for shift in range(64 - _SHORT_DIGIT, -1, -_SHORT_DIGIT):
            steps = np.arange(1, 2**_SHORT_DIGIT, dtype=np.uint64) << np.uint64(shift)
            ends = limits[..., np.newaxis] + steps
            below = [np.searchsorted(of, end) for of, end in zip(keys, ends, strict=True)]
            counts = self.add(np.ravel(below)).reshape(ends.shape)
            digits = np.count_nonzero(counts <= wanted[..., np.newaxis], axis=-1)
            limits += digits.astype(np.uint64) << np.uint64(shift)
        return limits

    def quantile(self, values: Any, weights: Any, level: float) -> float:
        """Quantile of one column.

        Without weights it lies between two values, as NumPy's does. Whole weights are repeated
        rows. With other weights it is the smallest value with at least this share of the weight at
        or below it.
        """
        keys = _keys_of(np.asarray(values, dtype=np.float64))
        times = self.repetitions(weights)
        if weights is None or times is not None:
            n = self.count(len(keys) if times is None else times.sum())
            place = level * (n - 1)
            before = int(np.floor(place))
            low, below = self.smallest_keys(keys, times, before + 1)
            high = low
            if below < before + 2 <= n:
                high = self.smallest_keys(keys, times, before + 2)[0]
            a, b, t = _value_of(low), _value_of(high), place - before
            return a + (b - a) * t if t < 0.5 else b - (b - a) * (1 - t)
        heaviest = self.largest(weights.max(initial=0.0))[0]
        bits = min(50, 62 - max(1, self.count(len(keys))).bit_length())
        scale = np.exp2(bits - np.frexp(heaviest)[1])
        whole = np.maximum(1, np.rint(weights * scale)).astype(np.int64)
        total = self.count(whole.sum())
        return _value_of(self.smallest_keys(keys, whole, level * total)[0])


def _columns(values: Any) -> Any:
    return values if values.ndim == 2 else values[:, np.newaxis]


def row_keys(seed: int, numbers: Any) -> NDArray[np.uint64]:
    """Scramble the numbers of rows: rows in the order of their keys are in random order."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        x = _mix(np.array([seed], dtype=np.uint64) + golden)[0] + (numbers + np.uint64(1)) * golden
        return _mix(x)


def _mix(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


_SIGN = np.uint64(2**63)


def _keys_of(values: Any) -> NDArray[np.uint64]:
    """Make integers that ascend with the numbers."""
    bits = (values + 0.0).view(np.uint64)  # -0 becomes 0
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _value_of(key: int) -> float:
    bits = np.array([key], dtype=np.uint64)
    return float(np.where(bits & _SIGN, bits & ~_SIGN, ~bits).view(np.float64)[0])
