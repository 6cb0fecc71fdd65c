"""Base class of the decision trees: input checks, growing, prediction, pruning."""

from __future__ import annotations

import warnings
from abc import ABCMeta
from math import ceil
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, clone, is_classifier
from sklearn.utils import Bunch, check_random_state, compute_sample_weight, metadata_routing
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_n_features,
    check_array,
    check_is_fitted,
)

from spinney import _core
from spinney.data.core_table import core_table, core_targets
from spinney.data.labels import encode_labels
from spinney.data.sample_weights import check_weights, scale_extreme, times_class_weights
from spinney.data.sklearn_versions import HtmlMixin
from spinney.data.table import Schema, Table, fit_table, read_table
from spinney.models.methods import ModelMethods
from spinney.models.tree import Tree
from spinney.models.tree_ensembles import SingleTree
from spinney.runtime.progress import progress_hook
from spinney.runtime.threads import effective_n_jobs
from spinney.tree import _prune
from spinney.tree.export._svg import export_svg
from spinney.tree.options import n_features_drawn

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_UNLIMITED = int(np.iinfo(np.int64).max)


def html_with_tree(estimator: Any, html: str) -> str:
    """Append the SVG diagram of a fitted tree to scikit-learn's notebook HTML."""
    if not hasattr(estimator, "tree_"):
        return html

    return f'{html}<div style="overflow-x: auto">{export_svg(estimator, max_depth=4)}</div>'


def encode_classes(estimator: Any, y: Any) -> tuple[Any, Any]:
    """Set `classes_`, `n_classes_`; return codes and labels, (n_rows, n_outputs)."""
    y = check_array(
        y,
        ensure_2d=False,
        dtype=None,
        ensure_all_finite=False,
        input_name="y",
        estimator=estimator,
    )
    if y.dtype.kind in "fc":
        check_array(y, ensure_2d=False, input_name="y", estimator=estimator)
    y = np.reshape(y, (len(y), -1))
    check_classification_targets(y)
    codes = np.empty(y.shape, dtype=np.uint32)
    estimator.classes_ = []
    for k in range(y.shape[1]):
        classes, codes[:, k] = encode_labels(y[:, k])
        estimator.classes_.append(classes)
    estimator.n_classes_ = np.array([len(classes) for classes in estimator.classes_], dtype=np.intp)
    return codes, y


def encode_numbers(estimator: Any, y: Any, *, check: bool = True) -> Any:
    """Return regression targets, (n_rows, n_outputs), checked for the criterion."""
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=estimator)
    if estimator.criterion == "poisson" and check:
        if np.any(y < 0):
            raise ValueError(
                "Some value(s) of y are negative which is not allowed for Poisson regression."
            )
        if np.sum(y) <= 0:
            raise ValueError("Sum of y is not positive which is necessary for Poisson regression.")
    return np.reshape(y, (len(y), -1))


def renamed_criterion(criterion: str) -> str:
    """Return the current name of a criterion; warn if the given name is deprecated."""
    if not isinstance(criterion, str) or criterion != "friedman_mse":
        return criterion
    warnings.warn(
        'criterion="friedman_mse" is deprecated, as in scikit-learn: it means "squared_error", '
        "which finds the same splits. Pass that instead.",
        FutureWarning,
        stacklevel=3,
    )
    return "squared_error"


class BaseTree(MultiOutputMixin, ModelMethods, HtmlMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of the trees; not to be used directly."""

    # Metadata routing must not request "check_input": pipelines do not pass it on.
    __metadata_request__predict = {"check_input": metadata_routing.UNUSED}

    classes_: Any
    n_classes_: Any
    n_outputs_: int
    n_features_in_: int
    categories_: list[Any]
    tree_: Tree
    _schema: Schema

    _parameter_constraints: dict[str, Any] = {
        "splitter": [StrOptions({"best", "random"})],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_split": [
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
        ],
        "min_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="neither"),
        ],
        "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "random_state": ["random_state"],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
        "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
        "monotonic_cst": ["array-like", None],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, callable, None],
    }

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        check_input: bool = True,
    ) -> Any:
        n_threads = effective_n_jobs(self.n_jobs)
        self.__dict__.pop("tree_", None)  # a failed fit must not keep the tree of an earlier one
        plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in _FLOATS
        if check_input or not plain:
            table, self._schema = fit_table(
                self, X, y, categorical_features=self.categorical_features
            )
        else:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = X.shape[1]
            self._schema = Schema(None, (None,) * X.shape[1])
            table = Table(X.shape[0], X.shape[1], matrix=X)
        self.categories_ = list(self._schema.categories)
        n_rows = table.n_rows
        if n_rows >= 2**31:
            raise ValueError(f"X: expected fewer than 2**31 rows, got {n_rows}")

        y, class_weight = self._encode_targets(y, check_input)
        if len(y) != n_rows:
            raise ValueError(f"Number of labels={len(y)} does not match number of samples={n_rows}")
        self.n_outputs_ = y.shape[1]

        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, n_rows)
        if class_weight is not None:
            weights = times_class_weights(weights, class_weight)
            weights, _ = scale_extreme(weights)
        total_weight = float(n_rows if weights is None else weights.sum())
        if total_weight <= 0.0:
            raise ValueError("sample_weight and class_weight leave no row of positive weight")
        if self.criterion == "poisson" and weights is not None and np.sum(weights @ y) <= 0:
            raise ValueError(
                "Sum of y is not positive which is necessary for Poisson regression: y is zero in "
                "all rows of positive sample_weight"
            )

        is_classification = is_classifier(self)
        n_classes: Any = np.atleast_1d(self.n_classes_) if is_classification else []
        options = self._grow_options(n_rows, total_weight, seed=self._seed(), n_threads=n_threads)
        arrays = _core.grow_tree(
            core_table(table, self._schema),
            core_targets(y, n_classes, weights),
            options,
            progress_hook(self),
        )
        self.tree_ = Tree.from_arrays(
            arrays,
            n_features=self.n_features_in_,
            n_classes=n_classes if is_classification else np.ones(self.n_outputs_, dtype=np.intp),
            n_categories=[0 if v is None else len(v) for v in self.categories_],
        )
        if is_classification and self.n_outputs_ == 1:
            self.n_classes_ = self.n_classes_[0]
            self.classes_ = self.classes_[0]
        if self.ccp_alpha > 0.0:
            _, _, node_alpha = _prune.link_alphas(self.tree_, "impurity")
            self.tree_ = self.tree_.collapse(node_alpha <= self.ccp_alpha)
        return self

    def _grow_options(self, n_rows: int, total_weight: float, **others: Any) -> Any:
        """Convert the parameters to core options; the fitted shape attributes must be set.

        `others` are further options, or replace those of the parameters.
        """
        self.max_features_ = n_features_drawn(self.max_features, self.n_features_in_)
        min_samples_split, min_samples_leaf = self._row_limits(n_rows)
        options: dict[str, Any] = {
            "criterion": self.criterion,
            "random_splits": self.splitter == "random",
            "min_samples_split": min_samples_split,
            "min_samples_leaf": min_samples_leaf,
            "min_weight_leaf": self.min_weight_fraction_leaf * total_weight,
            "max_features": min(self.max_features_, self.n_features_in_),
            "min_impurity_decrease": float(self.min_impurity_decrease),
            "monotonic_cst": self._monotonic_signs(),
        }
        if self.max_depth is not None:
            options["max_depth"] = min(int(self.max_depth), _UNLIMITED)
        if self.max_leaf_nodes is not None:
            options["max_leaf_nodes"] = min(int(self.max_leaf_nodes), 2 * n_rows)
        return _core.GrowOptions(**{**options, **others})

    def _encode_targets(self, y: Any, check_input: bool) -> tuple[Any, Any]:
        """Return targets, (n_rows, n_outputs), and the row weights from `class_weight`."""
        if not is_classifier(self):
            return encode_numbers(self, y, check=check_input), None
        codes, labels = encode_classes(self, y)
        weights = None
        if self.class_weight is not None:
            weights = compute_sample_weight(self.class_weight, labels)
        return codes, weights

    def _row_limits(self, n_rows: int) -> tuple[int, int]:
        """Return min_samples_split and min_samples_leaf as numbers of rows."""
        leaf = self.min_samples_leaf
        leaf = int(leaf) if isinstance(leaf, Integral) else max(1, ceil(leaf * n_rows))
        split = self.min_samples_split
        split = int(split) if isinstance(split, Integral) else max(2, ceil(split * n_rows))
        # A limit above n_rows forbids every split, as n_rows + 1 does.
        leaf, split = min(leaf, n_rows + 1), min(split, n_rows + 1)
        return max(split, 2 * leaf), leaf

    def _seed(self) -> int:
        """Return the seed of all draws: 0 if `random_state` is None and only breaks ties."""
        drawn = n_features_drawn(self.max_features, self.n_features_in_)
        nothing_drawn = self.splitter == "best" and drawn >= self.n_features_in_
        if self.random_state is None and nothing_drawn:
            return 0
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _monotonic_signs(self) -> list[int]:
        if self.monotonic_cst is None:
            return []
        if self.n_outputs_ > 1:
            raise ValueError("Monotonicity constraints are not supported with multiple outputs.")
        signs = np.asarray(self.monotonic_cst)
        if signs.shape[0] != self.n_features_in_:
            raise ValueError(
                f"monotonic_cst has shape {signs.shape[0]} but the input data "
                f"X has {self.n_features_in_} features."
            )
        if not np.all(np.isin(signs, (-1, 0, 1))):
            raise ValueError(
                "monotonic_cst must be None or an array-like of -1, 0 or 1, but"
                f" got {np.unique(signs)}"
            )
        for feature in np.flatnonzero(signs):
            if self.categories_[feature] is not None:
                raise ValueError(
                    f"monotonic_cst must be 0 for categorical features, got {signs[feature]} for "
                    f"feature {feature}"
                )
        if is_classifier(self):
            if self.n_classes_[0] > 2:
                raise ValueError(
                    "Monotonicity constraints are not supported with multiclass classification"
                )
            # The core constrains the first class; `monotonic_cst` refers to the second.
            signs = -signs.astype(int)
        return [int(sign) for sign in signs]

    def _read(self, X: Any, check_input: bool = True) -> Any:
        """Convert X to a core table after checking it against the training schema."""
        check_is_fitted(self)
        if not check_input:
            _check_n_features(self, X, reset=False)
            plain = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype in _FLOATS
            if plain and not self._schema.has_categories:
                return _core.Table.from_matrix(X)
        if self._is_plain(X):
            # Only infinities remain to be checked, and the core does that during prediction.
            return _core.Table.from_matrix(X, known_finite=False)
        return core_table(read_table(self, X, self._schema), self._schema)

    def _is_plain(self, X: Any) -> bool:
        """Return whether X needs no conversion: a float matrix, a model without names."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype in _FLOATS
            and X.shape[1] == self.n_features_in_
            and X.shape[0] > 0
            and not self._schema.has_categories
            and self._schema.names is None
        )

    def fitted_model(self) -> SingleTree:
        """Return the fitted model as an immutable value, without the estimator's methods.

        Returns
        -------
        SingleTree
            The tree.
        """
        check_is_fitted(self)
        classes = self.classes_ if is_classifier(self) else None
        return SingleTree(self.tree_, self._schema, classes)

    def apply(self, X: Any, check_input: bool = True) -> NDArray[np.int64]:
        """Return the index of the leaf that each row reaches.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        check_input : bool, default=True
            False skips the validation of a float32 or float64 array.

        Returns
        -------
        ndarray of shape (n_rows,)
            Indices into the arrays of ``tree_``.
        """
        table = self._read(X, check_input)
        return self.tree_.apply_table(table, effective_n_jobs(self.n_jobs))

    def decision_path(self, X: Any, check_input: bool = True) -> Any:
        """Return the nodes on the path of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        check_input : bool, default=True
            False skips the validation of a float32 or float64 array.

        Returns
        -------
        csr_matrix of shape (n_rows, n_nodes)
            Ones where a row passes through a node.
        """
        table = self._read(X, check_input)
        return self.tree_.decision_path_table(table, effective_n_jobs(self.n_jobs))

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
        """Share of each feature in the total decrease of the impurity."""
        check_is_fitted(self)
        return self.tree_.compute_feature_importances()

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return the nested sequence of subtrees of cost-complexity pruning.

        Parameters
        ----------
        X, y, sample_weight
            Training data, as for `fit`.

        Returns
        -------
        Bunch
            ``ccp_alphas``: the alphas at which the subtree that minimises impurity plus
            alpha times leaves changes; ``impurities``: the sum of the leaves' impurities there.
        """
        grown = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight=sample_weight)
        alphas, risks, _ = _prune.link_alphas(grown.tree_, "impurity")
        return Bunch(ccp_alphas=alphas, impurities=risks)

    def _with_tree(self, tree: Tree) -> Any:
        """Return a copy of this fitted estimator with another tree."""
        copy = clone(self)
        for name, value in vars(self).items():
            if name not in copy.get_params(deep=False):
                setattr(copy, name, value)
        copy.tree_ = tree
        return copy

    def prune(
        self,
        X: Any,
        y: Any,
        *,
        cv: Any = None,
        sample_weight: Any = None,
        by: str | None = None,
        one_standard_error: bool = False,
    ) -> Any:
        """Return a pruned copy of the tree; this estimator does not change.

        Parameters
        ----------
        X, y : array-like
            With `cv`: the training data. Without: validation data not used for training.
        cv : int or cross-validation splitter, default=None
            If given, cost-complexity pruning: alpha is chosen by cross-validation on (X, y), and
            the tree grown on all rows is pruned with it. (An unfitted estimator is fitted first.)
            A number means that many shuffled folds, stratified for a classifier.
            If None, reduced-error pruning: from the bottom up, a node becomes a leaf where that
            does not raise the error on (X, y).
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows of X.
        by : {"error", "impurity"}, default=None
            The risk in cost-complexity pruning: training error (the default for a classifier) or
            impurity (the default for a regressor, where it equals the training error).
        one_standard_error : bool, default=False
            Choose the smallest tree whose cross-validated error is within one standard error of
            the lowest, instead of the tree with the lowest error.

        Returns
        -------
        estimator
            With ``pruning_``: a Bunch of ``alpha`` (chosen), and for every subtree of the nested
            sequence ``alphas``, ``n_leaves``, and ``errors`` ± ``standard_errors``. Reduced-error
            pruning sets only ``error_before`` and ``error``.
        """
        classification = is_classifier(self)
        by = ("error" if classification else "impurity") if by is None else by
        if by not in ("error", "impurity") or (by == "error" and not classification):
            expected = "'error' or 'impurity'" if classification else "'impurity'"
            raise ValueError(f"by must be {expected} for {type(self).__name__}, got {by!r}")
        if cv is None:
            return _prune.by_reduced_error(self, X, y, sample_weight)
        return _prune.by_cross_validation(
            self,
            X,
            y,
            cv=cv,
            sample_weight=sample_weight,
            by=by,
            one_standard_error=one_standard_error,
        )

    def _html_repr(self) -> str:
        """Return the notebook representation, followed by the tree if it is fitted."""
        return html_with_tree(self, str(super()._html_repr()))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tree_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
