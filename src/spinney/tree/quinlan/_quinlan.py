"""Base class of ID3 and C4.5: input checks, growing, prediction."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from spinney import _core
from spinney.conformal.mixins import SetsOnRequest
from spinney.data.core_table import core_table, core_targets
from spinney.data.sklearn_versions import HtmlMixin, check_sample_weight
from spinney.data.table import Schema, Table, column_kind, fit_table, read_table
from spinney.models.methods import ModelMethods
from spinney.runtime.progress import progress_hook
from spinney.runtime.threads import effective_n_jobs
from spinney.tree.base import encode_classes, html_with_tree
from spinney.tree.quinlan._describe_multiway import NamedMultiwayTree
from spinney.tree.quinlan._multiway_tree import MultiwayTree

__all__ = ["QuinlanTree", "information_gain"]


def declared_categories(X: Any, declared: Any) -> Any:
    """Return `declared`, or for an array with strings a mask of its string columns."""
    if not (isinstance(declared, str) and declared == "from_dtype") or sp.issparse(X):
        return declared
    if type(X) is not np.ndarray and nw.dependencies.is_into_dataframe(X):
        return declared
    values = np.array(X, dtype=object) if isinstance(X, (list, tuple)) else X
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "OUS":
        return declared
    mask = [column_kind(column) == "categories" for column in values.T]
    return mask if any(mask) else declared


_MOST_WEIGHT = 1e306


class QuinlanTree(SetsOnRequest, ClassifierMixin, ModelMethods, HtmlMixin, BaseEstimator):
    """Base class of ID3 and C4.5; not to be used directly."""

    classes_: Any
    n_classes_: Any
    n_features_in_: int
    categories_: list[Any]
    tree_: MultiwayTree
    _schema: Schema

    categorical_features: Any
    n_jobs: int | None
    criterion = "entropy"  # name shown by the exporters

    _parameter_constraints: dict[str, Any] = {
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "callbacks": [None, callable, list, tuple],
    }

    def _options(self, n_threads: int = 1) -> Any:
        """Convert the parameters to core options."""
        raise NotImplementedError

    def _fit_discretizer(self, table: Table, schema: Schema, weights: Any) -> None:
        """Fit the conversion of numeric columns to categories; overridden by ID3."""

    def _discretize(self, table: Table, schema: Schema) -> tuple[Table, Schema]:
        """Convert numeric columns to categories; overridden by ID3."""
        return table, schema

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        self.__dict__.pop("tree_", None)
        declared = declared_categories(X, self.categorical_features)
        table, self._schema = fit_table(
            self, X, y, categorical_features=declared, accept_sparse=False
        )
        codes, _ = encode_classes(self, column_or_1d(y, warn=True))
        check_consistent_length(np.empty((table.n_rows, 0)), codes)
        weights = None
        if sample_weight is not None:
            weights = _check_counts(sample_weight, table.n_rows)
        self._fit_discretizer(table, self._schema, weights)
        coded, schema = self._discretize(table, self._schema)
        self.categories_ = list(schema.categories)
        n_classes = self.n_classes_
        options = self._options(effective_n_jobs(self.n_jobs))
        arrays = _core.grow_quinlan_tree(
            core_table(coded, schema),
            core_targets(codes, n_classes, weights),
            options,
            progress_hook(self),
        )
        self.classes_, self.n_classes_ = self.classes_[0], int(n_classes[0])
        self.tree_ = MultiwayTree(
            arrays, self.n_features_in_, self.n_classes_, options.missing_is_category
        )
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        check_is_fitted(self)
        table = read_table(self, X, self._schema, accept_sparse=False)
        coded, schema = self._discretize(table, self._schema)
        return self.tree_.predict_table(core_table(coded, schema), effective_n_jobs(self.n_jobs))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes.
        """
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(probabilities, axis=1)])

    def get_depth(self) -> int:
        """Return the depth of the deepest leaf; a tree of one node has depth 0."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each column in the total information gain."""
        check_is_fitted(self)
        return self.tree_.compute_feature_importances()

    def _readable_tree(self, feature_names: Any = None, class_names: Any = None) -> Any:
        return NamedMultiwayTree(self, feature_names, class_names)

    def _html_repr(self) -> str:
        """Return the notebook representation, followed by the tree if it is fitted."""
        return html_with_tree(self, str(super()._html_repr()))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tree_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def information_gain(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    categorical_features: Any = "from_dtype",
    threshold_cost: bool = True,
    min_samples_branch: float = 1.0,
) -> Bunch:
    """Return the information gain and the gain ratio of each column.

    Parameters
    ----------
    X : array or frame of shape (n_rows, n_features)
        The rows. A categorical column has a branch for each category. A numeric column has two,
        with the threshold of largest gain.
    y : array-like of shape (n_rows,)
        The classes.
    sample_weight : array-like of shape (n_rows,), default=None
        Row weights; None means equal weights.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Categorical columns, as in `C45Classifier`.
    threshold_cost : bool, default=True
        Whether to subtract log2(number of thresholds) / rows from the gain of a numeric column, as
        in C4.5.
    min_samples_branch : float, default=1.0
        Smallest weight of at least two branches.

    Returns
    -------
    Bunch
        ``names`` of the columns and, for each, ``gain``, ``split_info`` and ``gain_ratio``, in
        bits; NaN where a column allows no split.

    Examples
    --------
    >>> from spinney.datasets import load_play_tennis
    >>> from spinney.tree import information_gain
    >>> tennis = load_play_tennis(as_frame=True)
    >>> gains = information_gain(tennis.data, tennis.target)
    >>> for name, gain, ratio in zip(gains.names, gains.gain, gains.gain_ratio):
    ...     print(f"{name:12s} {gain:.3f} {ratio:.3f}")
    outlook      0.247 0.156
    temperature  0.029 0.019
    humidity     0.152 0.152
    windy        0.048 0.049
    """
    # Imported here because `_c45` imports this module.
    from spinney.tree.quinlan._c45 import C45Classifier

    model = C45Classifier(
        threshold_cost=threshold_cost,
        min_samples_branch=min_samples_branch,
        categorical_features=categorical_features,
    )
    model._validate_params()
    declared = declared_categories(X, categorical_features)
    table, schema = fit_table(model, X, y, categorical_features=declared, accept_sparse=False)
    codes, _ = encode_classes(model, column_or_1d(y, warn=True))
    check_consistent_length(np.empty((table.n_rows, 0)), codes)
    weights = None
    if sample_weight is not None:
        weights = _check_counts(sample_weight, table.n_rows)
    splits = _core.quinlan_root_splits(
        core_table(table, schema),
        core_targets(codes, model.n_classes_, weights),
        model._options(),
    )
    found, gain, info = (np.array(column) for column in zip(*splits, strict=True))
    gain = np.where(found, gain, np.nan)
    info = np.where(found, info, np.nan)
    names = getattr(model, "feature_names_in_", None)
    return Bunch(
        names=[f"x[{i}]" for i in range(len(gain))] if names is None else list(names),
        gain=gain,
        split_info=info,
        gain_ratio=gain / info,
    )


def _check_counts(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Check weights that count rows, and so cannot be scaled."""
    weights = check_sample_weight(
        sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
    )
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not total <= _MOST_WEIGHT:
        raise ValueError(
            f"sample_weight must sum to at most {_MOST_WEIGHT:.0e}; got {total:.3g}. A row of "
            "weight 2 counts as two: divide all weights by a number"
        )
    return weights
