"""Selection of rows from any kind of table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["take_rows"]


def take_rows(table: Any, rows: NDArray[np.intp]) -> Any:
    """Return selected rows of a data frame, a series, an array or a sparse matrix.

    Parameters
    ----------
    table : data frame, series, array or sparse matrix
        The rows to select from; the result is of the same type.
    rows : array of int
        Indices of the selected rows.
    """
    # Imported here for start-up time: arrays do not need it.
    import narwhals.stable.v2 as nw

    frame = nw.from_native(table, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame[rows, :].to_native()
    if isinstance(frame, nw.Series):
        return frame[rows].to_native()
    return table.tocsr()[rows] if hasattr(table, "tocsr") else table[rows]
