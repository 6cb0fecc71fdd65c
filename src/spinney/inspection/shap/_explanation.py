"""What a model's answers are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Explanation"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Explanation:
    """Parts of a model's answers, a number for each row and column, that add up to the answer.

    Attributes have the names and shapes of ``shap.Explanation``, so that what reads those reads
    this: of shap's plots, ``violin``, ``force`` and ``summary_plot``. The others ask for the class,
    which `to_shap` makes.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_outputs)
        The part of each column.
    base_values : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        The answer when nothing is known of a row.
    data : ndarray of shape (n_rows, n_columns)
        The rows; objects if some columns are categories.
    feature_names : list of str
        The columns.
    output_names : list of str or None
        Classes, or targets, if there are several outputs.
    output : str
        What is explained, in words: "prediction", "log-odds", "probability" and so on.
    method : str
        How, in words.
    standard_errors : ndarray of the shape of `values`, or None
        Of values that were sampled.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import RandomForestRegressor
    >>> from spinney.inspection import explain
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> explanation = explain(forest, X)
    >>> explanation.values.shape, explanation.output
    ((442, 10), 'prediction')
    >>> total = explanation.base_values + explanation.values.sum(axis=1)
    >>> bool(abs(total - forest.predict(X)).max() < 1e-9)
    True
    >>> [name for _, name in zip(range(2), explanation.feature_names)]
    ['age', 'sex']
    """

    values: Floats
    base_values: Floats
    data: NDArray[Any]
    feature_names: list[str]
    output_names: list[str] | None
    output: str
    method: str
    standard_errors: Floats | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values."""
        return self.values.shape

    @property
    def display_data(self) -> NDArray[Any]:
        """The rows as they are shown: the same as `data`."""
        return self.data

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Explanation:
        """Return the explanation of some rows, as arrays are indexed; a number keeps one row."""
        if isinstance(index, tuple):
            raise TypeError("Explanation: expected an index of rows; outputs have of_output")
        if isinstance(index, int | np.integer):
            n = len(self)
            if not -n <= index < n:
                raise IndexError(f"Explanation: expected a row below {n}, got {index}")
            index = slice(int(index) % n, int(index) % n + 1)
        errors = self.standard_errors
        return Explanation(
            self.values[index],
            self.base_values[index],
            self.data[index],
            self.feature_names,
            self.output_names,
            self.output,
            self.method,
            None if errors is None else errors[index],
        )

    def of_output(self, output: Any) -> Explanation:
        """Return the explanation of one output.

        Parameters
        ----------
        output : int or str
            Its number or its name.

        Returns
        -------
        Explanation
            With two-dimensional values.
        """
        if self.values.ndim == 2:
            if output in (0, -1):
                return self
            raise ValueError(f"output: expected 0, as there is one output only, got {output!r}")
        n = self.values.shape[2]
        names = self.output_names or [str(k) for k in range(n)]
        if isinstance(output, str) and output in names:
            output = names.index(output)
        if not isinstance(output, int | np.integer) or not -n <= output < n:
            raise ValueError(
                f"output: expected a number below {n} or one of {', '.join(names)}, got {output!r}"
            )
        errors = self.standard_errors
        return Explanation(
            self.values[:, :, output],
            self.base_values[:, output],
            self.data,
            self.feature_names,
            [names[output]],
            self.output,
            self.method,
            None if errors is None else errors[:, :, output],
        )

    def to_shap(self) -> Any:
        """Make a ``shap.Explanation`` of it, for shap's plots.

        Returns
        -------
        shap.Explanation
            With the same numbers. Its ``[0]`` is the first row, as ``shap.plots.waterfall`` wants
            it, its ``[:, "age"]`` a column, as ``shap.plots.scatter`` does, and its ``[:, :, 1]``
            the second of several outputs.

        Examples
        --------
        >>> shap.plots.beeswarm(explain(model, X).to_shap())  # doctest: +SKIP
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError(
                "to_shap: expected the package shap, which is not installed"
            ) from error
        one = self.values.ndim == 2
        return shap.Explanation(
            self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=None if one else self.output_names,
        )
