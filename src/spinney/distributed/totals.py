"""Sums, means and quantiles over all rows of a fit, and keys for random draws.

The rows may be partitioned among workers. All results are computed from sums of integers, so they
are the same, to the last bit, for any number of workers and any order of rows. A single worker
computes them in the same way.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.distributed.exchange import Exchange

__all__ = ["RowNumbers", "Totals", "row_keys"]

_DIGIT = 16  # bits of a key that one pass of a radix search determines
_SHORT_DIGIT = 8  # the same if many keys are searched at once
_MAX_REPEATED_ROWS = 2**32  # with more rows, sums could lose bits of a float64


class RowNumbers:
    """Numbers of a worker's rows in the whole table.

    Parameters
    ----------
    ranges : sequence of (int, int)
        For each range of contiguous rows the index of its first row at this worker, ascending, and
        the number of this row in the whole table. Empty: this worker has all rows.
    """

    def __init__(self, ranges: Sequence[tuple[int, int]] = ()) -> None:
        self.ranges = [(int(begin), int(number)) for begin, number in ranges]

    def of(self, n_rows: int) -> NDArray[np.uint64]:
        """Return the numbers of the first n rows."""
        numbers = np.arange(n_rows, dtype=np.uint64)
        if not self.ranges:
            return numbers
        ends = [begin for begin, _ in self.ranges[1:]] + [n_rows]
        for (begin, number), end in zip(self.ranges, ends, strict=True):
            numbers[begin:end] = np.arange(number, number + max(0, end - begin), dtype=np.uint64)
        return numbers


class Totals:
    """Sums and other statistics of the rows of all workers.

    All workers call the same methods in the same order.

    Parameters
    ----------
    exchange : Exchange or None
        Connection to the other workers; None: this worker has all rows.
    """

    def __init__(self, exchange: Exchange | None = None) -> None:
        self.exchange = exchange

    @property
    def shared(self) -> bool:
        """Whether other workers have rows, too."""
        return self.exchange is not None

    def add(self, values: Any) -> Any:
        """Return integers summed over the workers."""
        values = np.array(values, dtype=np.int64, ndmin=1)
        if self.exchange is not None:
            self.exchange.add(values)
        return values

    def largest(self, values: Any) -> Any:
        """Return the maximum over the workers of each number."""
        values = np.array(values, dtype=np.float64, ndmin=1)
        if self.exchange is not None:
            self.exchange.max(values)
        return values

    def count(self, n: Any) -> int:
        """Return one integer summed over the workers."""
        return int(self.add(n)[0])

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true at any worker."""
        return self.count(int(flag)) > 0

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all workers, by rank."""
        if self.exchange is None:
            return [value]
        messages = self.exchange.gather(pickle.dumps(value))
        messages.reverse()
        # Each message is dropped before the next one is unpickled, to save memory.
        return [pickle.loads(messages.pop()) for _ in range(len(messages))]

    def extremes(self, values: Any) -> tuple[Any, Any]:
        """Return the smallest and the largest value of each column, (n_columns,)."""
        columns = _columns(values)
        low = columns.min(axis=0, initial=np.inf)
        high = columns.max(axis=0, initial=-np.inf)
        if self.exchange is None:
            return low, high
        both = self.largest(np.concatenate([-low, high]))
        return -both[: len(low)], both[len(low) :]

    def repetitions(self, weights: Any) -> Any:
        """Return integer weights as repetitions of rows, or None for other weights.

        Weights are repetitions if all of them are integers below 2^31 that sum to at most 2^32.
        """
        if weights is None or self.any(
            bool(((weights != np.floor(weights)) | (weights >= 2**31)).any())
        ):
            return None
        times = weights.astype(np.int64)
        return times if self.count(times.sum()) <= _MAX_REPEATED_ROWS else None

    def sums(self, values: Any, times: Any = None) -> NDArray[np.float64]:
        """Return the sum of each column of finite numbers, (n_columns,).

        The numbers are rounded to two fixed-point integers, which keep nearly all bits. Each row
        counts `times` times (ndarray of int64); None: once.
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
            high_digits = np.rint(scaled)
            low_digits = np.rint((scaled - high_digits) * 2.0**bits)
            both = [digits.astype(np.int64) for digits in (high_digits, low_digits)]
            both = both if times is None else [digits * times for digits in both]
            totals = self.add([int(digits.sum()) for digits in both])
            out[k] = (int(totals[0]) * 2**bits + int(totals[1])) / 2**bits / scale
        return out

    def mean(self, values: Any, weights: Any) -> NDArray[np.float64]:
        """Return the weighted mean of each column, (n_columns,)."""
        if weights is None:
            return self.sums(values) / self.count(len(values))
        times = self.repetitions(weights)
        if times is not None:
            return self.sums(values, times) / self.count(times.sum())
        columns = _columns(values)
        return self.sums(columns * weights[:, np.newaxis]) / self.sums(weights)

    def class_weights(self, codes: Any, weights: Any, n_classes: int) -> NDArray[np.float64]:
        """Return the total weight of each class."""
        if weights is None:
            counts = np.bincount(codes, minlength=n_classes)
            return np.asarray(self.add(counts).astype(np.float64))
        return np.array(
            [self.sums(np.where(codes == k, weights, 0.0))[0] for k in range(n_classes)]
        )

    def key_at_weight(self, keys: Any, weights: Any, wanted: Any) -> tuple[int, int]:
        """Return the smallest key at which the cumulative weight reaches `wanted`.

        Parameters
        ----------
        keys : ndarray of uint64
            One for each row.
        weights : ndarray of int64 or None
            Weights of the rows; None: 1 each.
        wanted : int or float
            At most the weight of all rows.

        Returns
        -------
        key : int
            The key.
        below : int
            Weight of the rows at or below it.
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
        """Return limits with given numbers of keys below them, over all workers.

        Parameters
        ----------
        keys : sequence of ndarray of uint64
            Lists of keys, each ascending. The keys of a list are distinct over all workers.
        wanted : ndarray of int of shape (n_lists, n_limits)
            Number of keys of the list below each limit.

        Returns
        -------
        ndarray of uint64 of shape (n_lists, n_limits)
            The largest limits with at most `wanted` keys below them.
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
        """Return a quantile of one column.

        Without weights, it is interpolated between two values like NumPy's. Integer weights count
        as repeated rows. With other weights, it is the smallest value with at least the share
        `level` of the weight at or below it.
        """
        keys = _keys_of(np.asarray(values, dtype=np.float64))
        times = self.repetitions(weights)
        if weights is None or times is not None:
            n = self.count(len(keys) if times is None else times.sum())
            position = level * (n - 1)
            before = int(np.floor(position))
            low, below = self.key_at_weight(keys, times, before + 1)
            high = low
            if below < before + 2 <= n:
                high = self.key_at_weight(keys, times, before + 2)[0]
            a, b, t = _value_of(low), _value_of(high), position - before
            return a + (b - a) * t if t < 0.5 else b - (b - a) * (1 - t)
        heaviest = self.largest(weights.max(initial=0.0))[0]
        bits = min(50, 62 - max(1, self.count(len(keys))).bit_length())
        scale = np.exp2(bits - np.frexp(heaviest)[1])
        integers = np.maximum(1, np.rint(weights * scale)).astype(np.int64)
        total = self.count(integers.sum())
        return _value_of(self.key_at_weight(keys, integers, level * total)[0])


def _columns(values: Any) -> Any:
    return values if values.ndim == 2 else values[:, np.newaxis]


def row_keys(seed: int, numbers: Any) -> NDArray[np.uint64]:
    """Return random keys of row numbers (SplitMix64); sorting by them shuffles."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        x = _mix(np.array([seed], dtype=np.uint64) + golden)[0] + (numbers + np.uint64(1)) * golden
        return _mix(x)


def _mix(x: Any) -> Any:
    """Apply the mixing function of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


_SIGN = np.uint64(2**63)


def _keys_of(values: Any) -> NDArray[np.uint64]:
    """Return integers in the same order as the floats."""
    bits = (values + 0.0).view(np.uint64)  # -0 becomes 0
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _value_of(key: int) -> float:
    bits = np.array([key], dtype=np.uint64)
    return float(np.where(bits & _SIGN, bits & ~_SIGN, ~bits).view(np.float64)[0])
