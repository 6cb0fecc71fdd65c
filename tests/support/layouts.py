"""Arrays in the memory layouts that NumPy supports."""

import numpy as np

LAYOUTS = ["C", "F", "strided", "reversed", "read-only"]


def lay_out(X, how):
    """Return a copy of X in the memory layout `how`."""
    if how == "strided":
        wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan, dtype=X.dtype)
        wide[::2, ::3] = X
        return wide[::2, ::3]
    if how == "reversed":
        return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    X = np.array(X, order="F" if how == "F" else "C")
    if how == "read-only":
        X.flags.writeable = False
    return X
