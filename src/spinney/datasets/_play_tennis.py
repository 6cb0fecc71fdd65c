"""Quinlan's "play tennis" data: fourteen days."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["load_play_tennis"]

_NAMES = ["outlook", "temperature", "humidity", "windy"]

# Columns: outlook, temperature, humidity, windy, play, and temperature (in Fahrenheit) and humidity
# (in percent) as numbers.
_DAYS = """
sunny    hot  high   no  no   85 85
sunny    hot  high   yes no   80 90
overcast hot  high   no  yes  83 86
rainy    mild high   no  yes  70 96
rainy    cool normal no  yes  68 80
rainy    cool normal yes no   65 70
overcast cool normal yes yes  64 65
sunny    mild high   no  no   72 95
sunny    cool normal no  yes  69 70
rainy    mild normal no  yes  75 80
sunny    mild normal yes yes  75 70
overcast mild high   yes yes  72 90
overcast hot  normal no  yes  81 75
rainy    mild high   yes no   71 91
"""

_DESCR = """\
Play tennis
===========

Fourteen days: the weather, and whether tennis was played. The example of J. R. Quinlan's papers on
ID3 (Induction of decision trees, Machine Learning 1, 1986) and C4.5, with the values of the
versions that come with WEKA. The numeric version has temperature and humidity as numbers.
"""


def load_play_tennis(
    *, numeric: bool = False, return_X_y: bool = False, as_frame: bool = False
) -> Any:
    """Load the fourteen days of the "play tennis" example.

    Parameters
    ----------
    numeric : bool, default=False
        Whether temperature and humidity are numbers instead of categories.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a bunch.
    as_frame : bool, default=False
        Return ``data`` as a pandas data frame and ``target`` as a pandas series.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        A bunch has ``data`` (14, 4), ``target`` ("yes" or "no"), ``feature_names``, ``frame``
        (``data`` and ``target`` side by side with ``as_frame=True``, else None) and ``DESCR``.

    Examples
    --------
    >>> from spinney.datasets import load_play_tennis
    >>> X, y = load_play_tennis(return_X_y=True)
    >>> X[0].tolist(), str(y[0])
    (['sunny', 'hot', 'high', 'no'], 'no')
    """
    days = [line.split() for line in _DAYS.strip().split("\n")]
    data: Any = np.array([day[:4] for day in days], dtype=object)
    if numeric:
        data[:, 1:3] = [[int(day[5]), int(day[6])] for day in days]
    target: Any = np.array([day[4] for day in days])
    frame = None
    if as_frame:
        # Imported here: optional, or for start-up time.
        import pandas as pd

        data = pd.DataFrame(data, columns=_NAMES).infer_objects()
        target = pd.Series(target, name="play")
        frame = pd.concat([data, target], axis=1)
    if return_X_y:
        return data, target
    # Imported here: optional, or for start-up time.
    from sklearn.utils import Bunch

    return Bunch(data=data, target=target, frame=frame, feature_names=list(_NAMES), DESCR=_DESCR)
