"""What all forests share: drawing, growing, following the rows out of the bag, predicting."""

from __future__ import annotations

from abc import ABCMeta
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar
from warnings import warn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, _fit_context, is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import check_random_state, compute_class_weight, compute_sample_weight
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
)

from spinney import _core
from spinney.data.core_table import core_table, core_targets, read_for_core
from spinney.data.sample_weights import scale_extreme, times_class_weights
from spinney.data.table import Schema, Table, fit_table, read_table
from spinney.data.warm_start import check_same_classes, check_same_columns, check_same_outputs
from spinney.forest.member_trees import LazyTrees, tree_of_subset
from spinney.models.forest_store import ForestStore
from spinney.models.methods import ModelMethods
from spinney.runtime.progress import progress_hook
from spinney.runtime.rollback import all_or_nothing
from spinney.runtime.threads import effective_n_jobs
from spinney.tree.base import BaseTree, encode_classes, encode_numbers

__all__ = [
    "BaseForest",
    "ForestShare",
    "by_trees",
    "draw_seed",
    "learn_table",
    "n_rows_drawn",
]

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


@dataclass(frozen=True)
class ForestShare:
    """The part of a forest that one of several workers grows.

    Parameters
    ----------
    first_tree : int
        Number of its first tree in the whole forest.
    seed : int
        Of the whole forest.
    schema : Schema or None
        Columns and categories of all rows, if this worker has some of them only.
    classes : list of ndarray, or None
        Classes of all rows, likewise, of each output.
    """

    first_tree: int
    seed: int
    schema: Schema | None = None
    classes: Any = None


class BaseForest(MultiOutputMixin, ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of the forests; not to be used directly."""

    _tree_class: ClassVar[type[BaseTree]]
    # Parameters that the trees share with the forest.
    _tree_params: ClassVar[tuple[str, ...]] = (
        "criterion",
        "max_depth",
        "min_samples_split",
        "min_samples_leaf",
        "min_weight_fraction_leaf",
        "max_features",
        "max_leaf_nodes",
        "min_impurity_decrease",
        "ccp_alpha",
        "monotonic_cst",
        "categorical_features",
    )

    classes_: Any
    n_classes_: Any
    n_outputs_: int
    n_features_in_: int
    categories_: list[Any]
    _schema: Schema
    _store: ForestStore
    _share: ForestShare | None = None  # while several workers grow one forest

    _parameter_constraints: dict[str, Any] = {
        **{
            name: BaseTree._parameter_constraints[name]
            for name in (*_tree_params, "random_state", "n_jobs", "verbose", "callbacks")
            if name != "criterion"
        },
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "bootstrap": ["boolean"],
        "oob_score": ["boolean", callable],
        "warm_start": ["boolean"],
        "max_samples": [
            None,
            Interval(RealNotInt, 0.0, None, closed="neither"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "importance_type": [StrOptions({"impurity", "corrected", "permutation"})],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow the forest.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows. Missing values and columns of categories need no preparation.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows. With `bootstrap` rows are drawn in proportion to them, otherwise
            they weigh in the trees. A row of weight 2 counts as two, for the coverage of intervals
            and sets as well.

        Returns
        -------
        estimator
            Itself.
        """
        if sp.issparse(y):
            raise ValueError("sparse multilabel-indicator for y is not supported.")
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        n_threads = effective_n_jobs(self.n_jobs)
        if not self.bootstrap and self.max_samples is not None:
            raise ValueError(
                "`max_sample` cannot be set if `bootstrap=False`. Either switch to "
                "`bootstrap=True` or set `max_sample=None`."
            )
        if not self.bootstrap and self.oob_score:
            raise ValueError("Out of bag estimation only available if bootstrap=True")
        if not self.bootstrap and self.importance_type != "impurity":
            raise ValueError(
                f"importance_type={self.importance_type!r} looks at rows out of the bag: expected "
                "bootstrap=True, got False"
            )
        fitted = self.__dict__.get("_store")
        goes_on = self.warm_start and fitted is not None
        if not goes_on:
            self._forget()
        n_before = len(fitted) if goes_on and fitted is not None else 0
        n_more = self.n_estimators - n_before
        if n_more < 0:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={n_before} when warm_start==True"
            )

        table, schema = learn_table(self, X, y)
        n_rows = table.n_rows
        if n_rows >= 2**31:
            raise ValueError(f"X: expected fewer than 2**31 rows, got {n_rows}")
        if goes_on:
            check_same_columns(self._schema, schema)
        self._schema = schema
        self.categories_ = list(schema.categories)
        exponent = 0
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
            )
            sample_weight, exponent = scale_extreme(sample_weight)
        known, n_known = (vars(self).get(name) for name in ("classes_", "n_outputs_"))
        targets, labels = self._encode_targets(y)
        check_consistent_length(np.empty((n_rows, 0)), targets)
        self.n_outputs_ = targets.shape[1]
        if goes_on:
            check_same_outputs(n_known, self.n_outputs_)
            if is_classifier(self):
                check_same_classes(known, self.classes_)
        weights = self._combined_weights(labels, sample_weight)
        if weights is not None:
            weights, more = scale_extreme(weights)
            exponent += more
        if weights is not None and not weights.sum() > 0:
            raise ValueError("sample_weight and class_weight leave no row of positive weight")
        n_drawn = n_rows
        if self.bootstrap:
            n_drawn = n_rows_drawn(n_rows, self.max_samples, weights, exponent)
        n_classes: Any = self.n_classes_ if is_classifier(self) else []

        if n_more == 0:
            warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                stacklevel=2,
            )
        self._n_samples = n_rows
        self._n_samples_bootstrap: Any = n_drawn if self.bootstrap else None
        self._sample_weight = weights
        if not goes_on:
            self._seed = draw_seed(self)
        template = self._make_tree()
        self.estimator_ = template
        options = _core.ForestOptions()
        options.tree = self._tree_options(template, n_rows)
        store = fitted
        if not goes_on or store is None:
            store = ForestStore(
                self.criterion,
                n_classes,
                self.n_outputs_,
                self.criterion == "absolute_error" or self.monotonic_cst is not None,
                [0 if v is None else len(v) for v in self.categories_],
            )
        options.first_tree = n_before + (0 if self._share is None else self._share.first_tree)
        options.n_trees = n_more
        options.n_threads = n_threads
        options.bootstrap = bool(self.bootstrap)
        options.n_drawn = n_drawn
        options.balance_classes = (
            self.bootstrap and getattr(self, "class_weight", None) == "balanced_subsample"
        )
        options.ccp_alpha = float(self.ccp_alpha)
        options.hard_votes = getattr(self, "voting", "soft") == "hard"
        follows = bool(self.bootstrap) and self._follows_out_of_bag()
        options.out_of_bag = follows
        options.followed = self._followed(n_rows)
        options.keep_members = not is_classifier(self)
        if not is_classifier(self):
            # Squares are taken around this, so that targets far from zero lose no digits.
            self._centre = targets.mean(axis=0)
            options.centre = self._centre.tolist()
        options.importance = self.importance_type
        out_of_bag = _core.OutOfBag()
        core_rows = core_table(table, schema)
        core_y = core_targets(targets, n_classes, None if self.bootstrap else weights)
        if follows and n_before > 0:
            self._restore_out_of_bag(out_of_bag, store, core_rows, targets)
        if n_more > 0:
            store.core.grow(
                _core.PreparedTable(core_rows, options.tree.random_splits, n_threads),
                core_y,
                options,
                weights if self.bootstrap else None,
                None,
                None,
                out_of_bag,
                by_trees(progress_hook(self), n_more),
            )
        self._store = store
        self._finish(targets, n_classes, n_more, out_of_bag, sample_weight)
        if schema.has_categories and self._share is None:
            self._learn_groups(table)
        if n_rows * self.n_features_in_ > 1_000_000:
            del core_rows, core_y
            _core.trim_memory()
        return self

    def _finish(
        self, targets: Any, n_classes: Any, n_more: int, told: Any, sample_weight: Any
    ) -> None:
        """Set what follows from the grown trees."""
        made = vars(self).get("_estimators")
        self._estimators = None if made is None else made.extended(len(self._store))
        self._n_classes = [int(k) for k in n_classes]
        if self.importance_type != "impurity":
            rows = told.importances.reshape(-1, self.n_features_in_)
            self._importances = rows.mean(axis=0)
        if self.bootstrap and self._follows_out_of_bag():
            self._oob_sums = told.sums.reshape(len(targets), -1)
            self._oob_squares = told.squares
            self._oob_n_trees = told.n_trees
            self._oob_curve = told.curve
            self._oob_importances = told.importances
        if not is_classifier(self):
            self._targets = np.ascontiguousarray(targets.T)
        if self.oob_score:
            kind = type_of_target(targets if self.n_outputs_ > 1 else targets[:, 0])
            if kind == "unknown" or (is_classifier(self) and kind == "multiclass-multioutput"):
                raise ValueError(
                    "The type of target cannot be used to compute OOB estimates. Got "
                    f"{kind} while only the following are supported: continuous, "
                    "continuous-multioutput, binary, multiclass, multilabel-indicator."
                )
            if n_more > 0 or "oob_score_" not in vars(self):
                self._set_oob_score_and_attributes(None, targets)
        if is_classifier(self) and self.n_outputs_ == 1:
            self.n_classes_ = self.n_classes_[0]
            self.classes_ = self.classes_[0]

    def _learn_groups(self, table: Table) -> None:
        """Learn from rows out of the bag what differs between categories."""

    def _forget(self) -> None:
        """Drop what an earlier fit left: whatever stops this one, no mixture of two remains."""
        for name in list(vars(self)):
            if name.startswith("_oob") or name in (
                "_store",
                "_centre",
                "_importances",
                "_targets",
                "_sample_weight",
                "_estimators",
                "oob_score_",
                "oob_curve_",
                "_held_out",
                "_group_scale",
            ):
                delattr(self, name)

    def _follows_out_of_bag(self) -> bool:
        return bool(self.oob_score)

    def _followed(self, n_rows: int) -> list[int]:
        """Rows that are followed when they are out of the bag; an empty list means all."""
        return []

    def _make_tree(self) -> Any:
        """Make a tree with the forest's parameters, not fitted."""
        return self._tree_class(**{name: getattr(self, name) for name in self._tree_params})

    def _tree_options(self, template: Any, n_rows: int) -> Any:
        """Make the core's options of one tree."""
        template.n_features_in_ = self.n_features_in_
        template.categories_ = self.categories_
        template.n_outputs_ = self.n_outputs_
        if is_classifier(self):
            template.n_classes_ = self.n_classes_
        options = template._grow_options(n_rows, 1.0)
        options.seed = self._seed
        options.coarse = True
        options.narrow_thresholds = True
        for name in ("n_features_in_", "categories_", "n_outputs_", "n_classes_", "max_features_"):
            template.__dict__.pop(name, None)
        return options

    def _encode_targets(self, y: Any) -> tuple[Any, Any]:
        """Targets as (n_rows, n_outputs) codes or numbers, and the labels they stand for."""
        if y is not None and np.asarray(y).shape[1:] == (1,):
            warn(
                "A column-vector y was passed when a 1d array was expected. Please change the "
                "shape of y to (n_samples,), for example using ravel().",
                DataConversionWarning,
                stacklevel=4,
            )
        if is_classifier(self):
            codes, labels = encode_classes(self, y)
            if self._share is not None and self._share.classes is not None:
                self.classes_ = list(self._share.classes)
                self.n_classes_ = np.array([len(known) for known in self.classes_], dtype=np.intp)
                for k, known in enumerate(self.classes_):
                    codes[:, k] = np.searchsorted(known, labels[:, k])
            return codes, labels
        y = encode_numbers(self, y, check=False)
        if self.criterion == "poisson":
            if np.any(y < 0):
                raise ValueError(
                    "Some value(s) of y are negative which is not allowed for Poisson regression."
                )
            if np.sum(y) <= 0:
                raise ValueError(
                    "Sum of y is not strictly positive which is necessary for Poisson regression."
                )
        return y, None

    def _combined_weights(self, labels: Any, sample_weight: Any) -> Any:
        """Weights of rows and classes together, or None."""
        class_weight = getattr(self, "class_weight", None)
        if class_weight is None:
            return sample_weight
        if isinstance(class_weight, str):
            if self.warm_start:
                warn(
                    'class_weight presets "balanced" or "balanced_subsample" are not recommended '
                    "for warm_start if the fitted data differs from the full dataset: give the "
                    "weights of the classes instead",
                    stacklevel=4,
                )
            if class_weight == "balanced_subsample" and self.bootstrap:
                return sample_weight
            balanced = [
                _balanced_weights(classes, column, sample_weight)
                for classes, column in zip(self.classes_, labels.T, strict=True)
            ]
            class_weight = balanced[0] if len(balanced) == 1 else balanced
        weights = compute_sample_weight(class_weight, labels)
        return times_class_weights(sample_weight, weights)

    def _restore_out_of_bag(self, out_of_bag: Any, store: ForestStore, rows: Any, y: Any) -> None:
        """Go on with what earlier trees told; if that was not kept, ask them again."""
        if hasattr(self, "_oob_sums") and len(self._oob_sums) == len(y):
            out_of_bag.restore(
                np.ascontiguousarray(self._oob_sums.ravel()),
                self._oob_squares,
                self._oob_n_trees,
                self._oob_curve,
                self._oob_importances,
            )
            return
        width = store.width
        sums = np.zeros((len(y), width))
        squares = np.zeros((0 if is_classifier(self) else len(y), width))
        n_trees = np.zeros(len(y), dtype=np.uint32)
        leaves = np.empty((len(y), len(store)), dtype=np.int64)
        store.core.apply(rows, effective_n_jobs(self.n_jobs), leaves)
        ordered = self.estimator_.splitter == "best" and any(n > 2 for n in store.shape[4])
        for t in range(len(store)):
            out = np.ones(len(y), dtype=bool)
            out[self._drawn(t)] = False
            if ordered:
                out &= _core.tells_order(_core.seed_of_tree(self._seed, t), len(y)) == 0
            values = store.tree(t).value.reshape(-1, width)[leaves[out, t]]
            sums[out] += values
            if len(squares):
                squares[out] += (values - self._centre) ** 2
            n_trees[out] += 1
        curve = np.full(len(store), np.nan)
        out_of_bag.restore(sums.ravel(), squares.ravel(), n_trees, curve, np.empty(0))

    def _drawn(self, tree: int) -> NDArray[np.int32]:
        """Rows of a tree's sample, in the order drawn."""
        drawn = _core.draw_bag(
            self._n_samples,
            self._n_samples_bootstrap,
            True,
            self._sample_weight,
            self._seed,
            tree,
        )
        return drawn.astype(np.int32)

    def _oob_values(self) -> Any:
        """Mean over the trees that did not see a row; zeros where every tree saw it."""
        n_trees = self._oob_n_trees.astype(np.float64)
        if (n_trees == 0).any():
            warn(
                "Some inputs do not have OOB scores. This probably means too few trees were used "
                "to compute any reliable OOB estimates.",
                UserWarning,
                stacklevel=5,
            )
        return self._oob_sums / np.maximum(n_trees, 1)[:, None]

    def _set_oob_score_and_attributes(self, X: Any, y: Any) -> None:
        raise NotImplementedError("OOB score not supported by tree embedding")

    @property
    def estimator(self) -> Any:
        """A tree with the forest's parameters, not fitted."""
        return self._make_tree()

    @property
    def oob_curve_(self) -> NDArray[np.float64]:
        """Out-of-bag score (accuracy, or R²) of the first 1, 2, … trees."""
        if "_oob_curve" not in vars(self):
            raise AttributeError("oob_curve_ needs oob_score=True in fit")
        return self._oob_curve

    @property
    def estimators_(self) -> Any:
        """The trees as estimators; each is made when it is first asked for."""
        if "_store" not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted: it has no estimators_")
        if self.__dict__.get("_estimators") is None:
            self._estimators = LazyTrees(len(self._store), self._make_fitted_tree)
        return self._estimators

    def _make_fitted_tree(self, index: int) -> Any:
        tree = self._tree_class(**self.estimator_.get_params(deep=False))
        tree.random_state = _core.seed_of_tree(self._seed, index)
        features = np.arange(self.n_features_in_)
        tree_of_subset(tree, self._store.tree(index), features, self._schema)
        if is_classifier(self):
            # As in scikit-learn, the trees of a forest know classes by their codes.
            codes = [np.arange(k, dtype=np.float64) for k in self._n_classes]
            tree.classes_ = codes[0] if self.n_outputs_ == 1 else codes
            tree.n_classes_ = self.n_classes_
        return tree

    @property
    def estimators_samples_(self) -> list[NDArray[np.int32]]:
        """Rows that each tree was grown from, drawn again when asked for."""
        check_is_fitted(self)
        if not self.bootstrap:
            return [np.arange(self._n_samples, dtype=np.int32) for _ in range(len(self._store))]
        return [self._drawn(t) for t in range(len(self._store))]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_estimators", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return "_store" in vars(self)

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.estimators_)

    def __getitem__(self, index: int) -> Any:
        """Return a tree."""
        return self.estimators_[index]

    def __iter__(self) -> Any:
        """Iterate over the trees."""
        return iter(self.estimators_)

    def _read(self, X: Any) -> Any:
        """Read the rows of X for the core, checked against what fit saw."""
        check_is_fitted(self)
        return read_for_core(self, X, self._schema)

    def _sum_predictions(self, X: Any) -> Any:
        """Sum over the trees, (n_rows, n_outputs * classes)."""
        table = self._read(X)
        out = np.empty((table.n_rows, self._store.width))
        hard = getattr(self, "voting", "soft") == "hard"
        self._store.core.sum_predictions(table, hard, effective_n_jobs(self.n_jobs), out)
        return out

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the index of the leaf that each row falls into, in each tree.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_estimators)
            Indices into the arrays of ``estimators_[i].tree_``.
        """
        table = self._read(X)
        out = np.empty((table.n_rows, len(self._store)), dtype=np.int64)
        self._store.core.apply(table, effective_n_jobs(self.n_jobs), out)
        return out

    def decision_path(self, X: Any) -> tuple[Any, NDArray[np.int64]]:
        """Return the nodes on the way of each row, in each tree.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        indicator : csr_matrix of shape (n_rows, n_nodes)
            Ones where a row passes through a node; the trees' nodes lie one after another.
        n_nodes_ptr : ndarray of shape (n_estimators + 1,)
            Where each tree's nodes begin.
        """
        table = self._read(X)
        n_threads = effective_n_jobs(self.n_jobs)
        paths = [
            self._store.tree(t).decision_path_table(table, n_threads)
            for t in range(len(self._store))
        ]
        counts = self._store.core.node_counts()
        return sp.hstack(paths).tocsr(), np.concatenate([[0], np.cumsum(counts)])

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of each feature, of the kind that ``importance_type`` names."""
        check_is_fitted(self)
        if self.importance_type != "impurity" and "_importances" in vars(self):
            return self._importances
        shares = np.empty((len(self._store), self.n_features_in_))
        self._store.core.importances(effective_n_jobs(self.n_jobs), shares)
        shares = shares[shares.any(axis=1)]  # trees that ask anything
        if len(shares) == 0:
            return np.zeros(self.n_features_in_)
        mean = shares.mean(axis=0)
        return mean / mean.sum()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def learn_table(estimator: Any, X: Any, y: Any = "no_validation") -> tuple[Table, Schema]:
    """Read the rows of fit: by their own columns, or by those of all workers' rows."""
    share = estimator._share
    if share is None or share.schema is None:
        return fit_table(estimator, X, y, categorical_features=estimator.categorical_features)
    return read_table(estimator, X, share.schema), share.schema


def draw_seed(estimator: Any) -> int:
    """Draw the seed of a forest, unless all workers have one already."""
    if estimator._share is not None:
        return int(estimator._share.seed)
    return int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))


def _balanced_weights(classes: Any, labels: Any, sample_weight: Any) -> dict[Any, float]:
    """Give each class a weight, so that all with rows of positive weight weigh the same."""
    if sample_weight is not None:
        weighted = sample_weight > 0
        labels, sample_weight = labels[weighted], sample_weight[weighted]
        classes = classes[np.isin(classes, labels)]
    weights = compute_class_weight(
        "balanced", classes=classes, y=labels, sample_weight=sample_weight
    )
    return dict(zip(classes, weights, strict=True))


def n_rows_drawn(n_rows: int, max_samples: Any, weights: Any, exponent: int = 0) -> int:
    """Rows to draw for each tree, with weights that were divided by 2^exponent."""
    if max_samples is None:
        return n_rows
    if isinstance(max_samples, Integral):
        return int(max_samples)
    with np.errstate(over="ignore"):
        total = n_rows if weights is None else float(np.ldexp(weights.sum(), exponent))
    if not max_samples * total < 2**31:
        raise ValueError(
            f"sample_weight: max_samples={max_samples} of their sum, {total:.3g}, must be fewer "
            "than 2**31 rows; give max_samples as an integer, or smaller weights"
        )
    what = "number of samples" if weights is None else "total sum of sample weights"
    drawn = max(int(max_samples * total), 1)
    if drawn < max(10, n_rows ** (1 / 3)):
        warn(
            f"Using the fractional value max_samples={max_samples} when the {what} is {total} "
            f"results in a low number ({drawn}) of bootstrap samples. We recommend passing "
            "`max_samples` as an integer instead.",
            stacklevel=4,
        )
    return drawn


def by_trees(hook: Any, n_trees: int) -> Any:
    """Tell of progress in trees; the core counts rows in finished leaves."""
    if hook is None:
        return None
    return lambda done, total: hook(min(n_trees, done * n_trees // max(total, 1)), n_trees)
