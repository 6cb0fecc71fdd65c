"""The result of an explanation by Shapley values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Explanation"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Explanation:
    """Shapley values: contributions of columns that add up to the prediction.

    Attributes have the names and shapes of ``shap.Explanation``, so that functions which use only
    these accept this class, too: ``violin``, ``force`` and ``summary_plot`` of shap's plots. The
    other plots check the class; use `to_shap` for them.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_outputs)
        The contribution of each column.
    base_values : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        The mean prediction, to which the contributions are added.
    data : ndarray of shape (n_rows, n_columns)
        The rows; objects if some columns are categories.
    feature_names : list of str
        The columns.
    output_names : list of str or None
        Classes, or targets, if there are several outputs.
    output : str
        A description of the output: "prediction", "log-odds", "probability" and so on.
    method : str
        A description of the method.
    standard_errors : ndarray of the shape of `values`, or None
        Standard errors of sampled values.

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
        """The rows for display: the same as `data`."""
        return self.data

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Explanation:
        """Return the explanation of some rows; an integer keeps one row."""
        if isinstance(index, tuple):
            raise TypeError(
                "Explanation: expected an index of rows, got a tuple; use of_output for outputs"
            )
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
            The index or the name of the output.

        Returns
        -------
        Explanation
            An explanation with two-dimensional values.
        """
        if self.values.ndim == 2:
            if output in (0, -1):
                return self
            raise ValueError(f"output: expected 0, because there is one output; got {output!r}")
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
        """Convert to a ``shap.Explanation``, for shap's plots.

        Returns
        -------
        shap.Explanation
            The same values. Index it with ``[0]`` for the first row (``shap.plots.waterfall``),
            with ``[:, "age"]`` for a column (``shap.plots.scatter``), and with ``[:, :, 1]`` for
            the second of several outputs.

        Examples
        --------
        >>> shap.plots.beeswarm(explain(model, X).to_shap())  # doctest: +SKIP
        """
        try:
            import shap  # an optional dependency
        except ImportError as error:
            raise ImportError(
                "to_shap: expected the package shap, which is not installed; install it with "
                "'pip install shap'"
            ) from error
        one = self.values.ndim == 2
        return shap.Explanation(
            self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=None if one else self.output_names,
        )
