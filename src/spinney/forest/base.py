"""The fit and the predictions that all forests share."""

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
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
)

from spinney import _core
from spinney.data.core_table import core_table, core_targets, read_for_core
from spinney.data.sample_weights import scale_extreme, times_class_weights
from spinney.data.sklearn_versions import check_sample_weight, compute_class_weight
from spinney.data.table import Schema, Table, fit_table, read_table
from spinney.data.warm_start import check_same_classes, check_same_columns, check_same_outputs
from spinney.distributed.workers import LOCAL, Workers
from spinney.forest.member_trees import LazyTrees, tree_of_subset
from spinney.forest.out_of_bag import OutOfBag
from spinney.forest.sampling import TreeSamples, draw_seed, n_rows_drawn
from spinney.forest.upgrade import upgrade_forest
from spinney.models.forest_store import ForestStore
from spinney.models.methods import ModelMethods, require_fitted
from spinney.models.tree_ensembles import AveragedTrees
from spinney.runtime.progress import progress_hook
from spinney.runtime.rollback import all_or_nothing
from spinney.runtime.threads import effective_n_jobs
from spinney.tree.base import BaseTree, encode_classes, encode_numbers
from spinney.tree.options import tree_options

__all__ = ["BaseForest", "make_training_table", "tree_progress"]

_TRIM_CELLS = 1_000_000  # above this size of X, memory is returned to the system after the fit


@dataclass(frozen=True)
class ForestData:
    """The rows of a fit.

    Parameters
    ----------
    table : Table
        The columns.
    schema : Schema
        Their names and categories.
    targets : ndarray of shape (n_rows, n_outputs)
        Codes of classes, or numbers.
    n_classes : sequence of int
        Number of classes of each output; empty for regression.
    sample_weight : ndarray of shape (n_rows,) or None
        The given weights.
    weights : ndarray of shape (n_rows,) or None
        Weights of rows and classes together, divided by 2**exponent.
    exponent : int
        See `weights`.
    """

    table: Table
    schema: Schema
    targets: Any
    n_classes: Any
    sample_weight: Any
    weights: Any
    exponent: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows


class BaseForest(MultiOutputMixin, ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of the forests; not to be used directly."""

    _tree_class: ClassVar[type[BaseTree]]
    # Parameters that the trees have in common with the forest.
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
    _model: AveragedTrees
    _samples: TreeSamples
    _out_of_bag: OutOfBag | None
    _estimators: LazyTrees | None

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
            Weights of the rows. With `bootstrap`, rows are drawn in proportion to them; without it,
            the trees use them. A row of weight 2 counts as two rows, also for the coverage of
            intervals and sets.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        if sp.issparse(y):
            raise ValueError("sparse multilabel-indicator for y is not supported.")
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight)

    def grow_trees(self, X: Any, y: Any, sample_weight: Any, workers: Workers) -> Any:
        """Grow some trees of a forest that several workers grow together.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        workers : Workers
            The seed of the forest, and the number of the first tree of this worker.

        Returns
        -------
        estimator
            The estimator, with the trees of this worker.
        """
        self._validate_params()
        return self._fit(X, y, sample_weight, workers)

    def _fit(self, X: Any, y: Any, sample_weight: Any, workers: Workers = LOCAL) -> Any:
        self._check_parameters()
        before = self._model_to_continue()
        n_more = self._n_trees_to_grow(before)
        data = self._read(X, y, sample_weight, before, workers)
        self._samples = self._plan_samples(data, before, workers)
        self.estimator_ = self._make_tree()
        store = self._new_store(data) if before is None else before.store
        counts = self._start_out_of_bag(data, before)
        if n_more > 0:
            first_tree = workers.first_tree + (0 if before is None else before.n_trees)
            self._grow(data, store, (first_tree, n_more), counts)
        self._set_results(data, store, n_more, counts)
        if data.schema.has_categories and workers.is_local:
            self._fit_groups(data.table)
        if data.n_rows * self.n_features_in_ > _TRIM_CELLS:
            _core.return_free_memory()
        return self

    def set_fitted_model(self, model: AveragedTrees, samples: TreeSamples) -> None:
        """Turn this estimator into a fitted one with the trees of another library.

        Parameters
        ----------
        model : AveragedTrees
            The trees. Attributes for classes, outputs and columns must have been set before.
        samples : TreeSamples
            How the rows of each tree were drawn.
        """
        self._model, self._samples = model, samples
        self._out_of_bag = self._estimators = None
        self.estimator_ = self._make_tree()

    # ------------------------------------------------------------------ steps of fit

    def _check_parameters(self) -> None:
        """Raise an error for parameters that contradict each other."""
        if not self.bootstrap and self.max_samples is not None:
            raise ValueError(
                "`max_sample` cannot be set if `bootstrap=False`. Either switch to "
                "`bootstrap=True` or set `max_sample=None`."
            )
        if not self.bootstrap and self.oob_score:
            raise ValueError("Out of bag estimation only available if bootstrap=True")
        if not self.bootstrap and self.importance_type != "impurity":
            raise ValueError(
                f"importance_type={self.importance_type!r} needs out-of-bag rows: expected "
                "bootstrap=True, got False"
            )

    def _model_to_continue(self) -> AveragedTrees | None:
        """Return the model that this fit adds trees to; without one, drop an earlier fit."""
        before: AveragedTrees | None = vars(self).get("_model")
        if self.warm_start and before is not None:
            return before
        for name in _FITTED:
            self.__dict__.pop(name, None)
        return None

    def _n_trees_to_grow(self, before: AveragedTrees | None) -> int:
        n_before = 0 if before is None else before.n_trees
        n_more: int = self.n_estimators - n_before
        if n_more < 0:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={n_before} when warm_start==True"
            )
        if n_more == 0:
            warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                stacklevel=5,
            )
        return n_more

    def _read(
        self, X: Any, y: Any, sample_weight: Any, before: AveragedTrees | None, workers: Workers
    ) -> ForestData:
        """Read columns, targets and weights; compare them with a continued model."""
        table, schema = make_training_table(self, X, y, workers)
        n_rows = table.n_rows
        if n_rows >= 2**31:
            raise ValueError(f"X: expected fewer than 2**31 rows, got {n_rows}")
        if before is not None:
            check_same_columns(before.schema, schema)
        self.categories_ = list(schema.categories)
        exponent = 0
        if sample_weight is not None:
            sample_weight = check_sample_weight(
                sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
            )
            sample_weight, exponent = scale_extreme(sample_weight)
        known_classes = vars(self).get("classes_")
        targets, labels = self._encode_targets(y, workers)
        check_consistent_length(np.empty((n_rows, 0)), targets)
        self.n_outputs_ = targets.shape[1]
        if before is not None:
            check_same_outputs(before.n_outputs, self.n_outputs_)
            if is_classifier(self):
                check_same_classes(known_classes, self.classes_)
        weights = self._combined_weights(labels, sample_weight)
        if weights is not None:
            weights, more = scale_extreme(weights)
            exponent += more
        if weights is not None and not weights.sum() > 0:
            raise ValueError("sample_weight and class_weight leave no row of positive weight")
        n_classes: Any = self.n_classes_ if is_classifier(self) else []
        return ForestData(table, schema, targets, n_classes, sample_weight, weights, exponent)

    def _plan_samples(
        self, data: ForestData, before: AveragedTrees | None, workers: Workers
    ) -> TreeSamples:
        """Determine the seed of the forest, and the number of rows that each tree draws."""
        n_drawn = None
        if self.bootstrap:
            n_drawn = n_rows_drawn(data.n_rows, self.max_samples, data.weights, data.exponent)
        seed = draw_seed(self.random_state, workers) if before is None else self._samples.seed
        return TreeSamples(seed, data.n_rows, n_drawn, True, data.weights)

    def _new_store(self, data: ForestData) -> ForestStore:
        return ForestStore(
            self.criterion,
            data.n_classes,
            self.n_outputs_,
            self.criterion == "absolute_error" or self.monotonic_cst is not None,
            data.schema.n_categories,
        )

    def _start_out_of_bag(self, data: ForestData, before: AveragedTrees | None) -> Any:
        """Return the core's out-of-bag sums, with those of the trees of a continued model."""
        if not is_classifier(self):
            # Squares of predictions are centred, so that targets far from 0 lose no digits.
            self._center = data.targets.mean(axis=0)
        counts = _core.OutOfBag()
        if before is None or before.n_trees == 0 or not self._needs_out_of_bag():
            return counts
        kept = self._out_of_bag
        if kept is None or len(kept.sums) != data.n_rows:
            kept = self._sum_out_of_bag(data, before)
        counts.restore(
            np.ascontiguousarray(kept.sums.ravel()),
            np.ascontiguousarray(kept.squares.ravel()),
            kept.n_trees,
            kept.curve,
            kept.importances,
        )
        return counts

    def _sum_out_of_bag(self, data: ForestData, before: AveragedTrees) -> OutOfBag:
        """Sum the out-of-bag predictions of the trees of a model without stored sums."""
        n_rows, width = data.n_rows, before.store.width
        sums = np.zeros((n_rows, width))
        squares = np.zeros((0 if is_classifier(self) else n_rows, width))
        n_trees = np.zeros(n_rows, dtype=np.uint32)
        rows = core_table(data.table, data.schema)
        leaves = before.leaves(rows, effective_n_jobs(self.n_jobs))
        for t in range(before.n_trees):
            out = self._samples.is_out_of_bag(t, without_order_rows=self._orders_categories())
            values = before.store.tree(t).value.reshape(-1, width)[leaves[out, t]]
            sums[out] += values
            if len(squares):
                squares[out] += (values - self._center) ** 2
            n_trees[out] += 1
        return OutOfBag(sums, squares, n_trees, np.full(before.n_trees, np.nan), np.empty(0))

    def _grow(
        self, data: ForestData, store: ForestStore, trees: tuple[int, int], counts: Any
    ) -> None:
        """Append trees to the store; `trees` is the index of the first one and their number."""
        first_tree, n_trees = trees
        n_threads = effective_n_jobs(self.n_jobs)
        n_drawn = self._samples.n_drawn
        tree_options = self._tree_options(data.schema, data.n_rows)
        options = _core.ForestOptions(
            tree=tree_options,
            first_tree=first_tree,
            n_trees=n_trees,
            n_threads=n_threads,
            bootstrap=bool(self.bootstrap),
            n_drawn=data.n_rows if n_drawn is None else n_drawn,
            balance_classes=(
                bool(self.bootstrap) and getattr(self, "class_weight", None) == "balanced_subsample"
            ),
            ccp_alpha=float(self.ccp_alpha),
            hard_votes=getattr(self, "voting", "soft") == "hard",
            out_of_bag=bool(self.bootstrap) and self._needs_out_of_bag(),
            followed=self._out_of_bag_subset(data.n_rows),
            keep_members=not is_classifier(self),
            centre=[] if is_classifier(self) else self._center.tolist(),
            importance=self.importance_type,
        )
        rows = core_table(data.table, data.schema)
        _core.grow_forest(
            store.core,
            _core.PreparedTable(rows, tree_options.random_splits, n_threads),
            core_targets(data.targets, data.n_classes, None if self.bootstrap else data.weights),
            options,
            data.weights if self.bootstrap else None,
            None,
            None,
            counts,
            tree_progress(progress_hook(self), n_trees),
        )

    def _set_results(self, data: ForestData, store: ForestStore, n_more: int, counts: Any) -> None:
        """Set the attributes that follow from the trees."""
        created = vars(self).get("_estimators")
        self._estimators = None if created is None else created.extended(len(store))
        if self.importance_type != "impurity":
            by_tree = counts.importances.reshape(-1, self.n_features_in_)
            self._importances = by_tree.mean(axis=0)
        self._out_of_bag = None
        if self.bootstrap and self._needs_out_of_bag():
            self._out_of_bag = OutOfBag(
                counts.sums.reshape(data.n_rows, -1),
                counts.squares.reshape(-1, store.width),
                counts.n_trees,
                counts.curve,
                counts.importances,
            )
        if not is_classifier(self):
            self._targets = np.ascontiguousarray(data.targets.T)
        if self.oob_score:
            self._check_oob_targets(data.targets)
            if n_more > 0 or "oob_score_" not in vars(self):
                self._set_oob_score_and_attributes(None, data.targets)
        if is_classifier(self) and self.n_outputs_ == 1:
            self.n_classes_ = self.n_classes_[0]
            self.classes_ = self.classes_[0]
        self._model = self._create_model(store, data.schema)

    def _create_model(self, store: ForestStore, schema: Schema) -> Any:
        """Return the fitted model; attributes of the targets have been set."""
        return AveragedTrees(store, schema, self.classes_ if is_classifier(self) else None)

    def _check_oob_targets(self, targets: Any) -> None:
        kind = type_of_target(targets if self.n_outputs_ > 1 else targets[:, 0])
        if kind == "unknown" or (is_classifier(self) and kind == "multiclass-multioutput"):
            raise ValueError(
                "The type of target cannot be used to compute OOB estimates. Got "
                f"{kind} while only the following are supported: continuous, "
                "continuous-multioutput, binary, multiclass, multilabel-indicator."
            )

    def _fit_groups(self, table: Table) -> None:
        """Learn from out-of-bag rows how predictions differ between categories."""

    def _needs_out_of_bag(self) -> bool:
        return bool(self.oob_score)

    def _out_of_bag_subset(self, n_rows: int) -> list[int]:
        """Return the rows with out-of-bag predictions; an empty list means all rows."""
        return []

    def _orders_categories(self) -> bool:
        """Whether half of the out-of-bag rows determined the order of the categories."""
        n_categories = self._model.store.shape[4]
        return bool(self.estimator_.splitter == "best" and any(n > 2 for n in n_categories))

    def _make_tree(self) -> Any:
        """Create an unfitted tree with the forest's parameters."""
        return self._tree_class(**{name: getattr(self, name) for name in self._tree_params})

    def _tree_options(self, schema: Schema, n_rows: int) -> Any:
        """Return the core's options of one tree."""
        return tree_options(
            self.estimator_,
            schema,
            n_rows,
            n_outputs=self.n_outputs_,
            n_classes=self.n_classes_ if is_classifier(self) else None,
            seed=self._samples.seed,
            coarse=True,
            narrow_thresholds=True,
        )

    def _encode_targets(self, y: Any, workers: Workers) -> tuple[Any, Any]:
        """Return targets as codes or numbers, (n_rows, n_outputs), and labels."""
        if y is not None and np.asarray(y).shape[1:] == (1,):
            warn(
                "A column-vector y was passed when a 1d array was expected. Please change the "
                "shape of y to (n_samples,), for example using ravel().",
                DataConversionWarning,
                stacklevel=5,
            )
        if is_classifier(self):
            codes, labels = encode_classes(self, y)
            if workers.classes is not None:
                self.classes_ = list(workers.classes)
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
        """Return the weights of rows and classes together, or None."""
        class_weight = getattr(self, "class_weight", None)
        if class_weight is None:
            return sample_weight
        if isinstance(class_weight, str):
            if self.warm_start:
                warn(
                    'class_weight presets "balanced" or "balanced_subsample" are not recommended '
                    "for warm_start if the fitted data differs from the full dataset: give the "
                    "weights of the classes instead",
                    stacklevel=5,
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

    def _oob_means(self) -> Any:
        """Return the mean predictions of the out-of-bag trees; 0 for rows without such trees."""
        assert self._out_of_bag is not None
        if (self._out_of_bag.n_trees == 0).any():
            warn(
                "Some inputs do not have OOB scores. This probably means too few trees were used "
                "to compute any reliable OOB estimates.",
                UserWarning,
                stacklevel=6,
            )
        return self._out_of_bag.means()

    def _set_oob_score_and_attributes(self, X: Any, y: Any) -> None:
        raise NotImplementedError("OOB score not supported by tree embedding")

    # ------------------------------------------------------------------ trees

    @property
    def tree_samples(self) -> TreeSamples:
        """How the rows of each tree were drawn."""
        check_is_fitted(self)
        return self._samples

    def evaluation_rows(self, tree: int) -> NDArray[np.intp]:
        """Return the training rows that may be used to evaluate the splits of a tree.

        Parameters
        ----------
        tree : int
            Index of the tree.
        """
        return np.flatnonzero(
            self._samples.is_out_of_bag(tree, without_order_rows=self._orders_categories())
        )

    @property
    def estimator(self) -> Any:
        """An unfitted tree with the forest's parameters."""
        return self._make_tree()

    @property
    def oob_curve_(self) -> NDArray[np.float64]:
        """Out-of-bag score (accuracy, or R²) of the first 1, 2, … trees."""
        kept = vars(self).get("_out_of_bag")
        if kept is None or not len(kept.curve):
            raise AttributeError("oob_curve_ needs oob_score=True in fit")
        return np.asarray(kept.curve)

    @property
    def estimators_(self) -> Any:
        """The trees as estimators; each is created on first access."""
        if "_model" not in vars(self):
            raise AttributeError(f"{type(self).__name__} is not fitted: it has no estimators_")
        if vars(self).get("_estimators") is None:
            self._estimators = LazyTrees(self._model.n_trees, self._make_fitted_tree)
        return self._estimators

    def _make_fitted_tree(self, index: int) -> Any:
        tree = self._tree_class(**self.estimator_.get_params(deep=False))
        tree.random_state = self._samples.seed_of_tree(index)
        features = np.arange(self.n_features_in_)
        tree_of_subset(tree, self._model.store.tree(index), features, self._model.schema)
        if is_classifier(self):
            # As in scikit-learn, the classes of the trees of a forest are codes.
            codes = [np.arange(k, dtype=np.float64) for k in self._model.store.shape[1]]
            tree.classes_ = codes[0] if self.n_outputs_ == 1 else codes
            tree.n_classes_ = self.n_classes_
        return tree

    @property
    def estimators_samples_(self) -> list[NDArray[np.int32]]:
        """Training rows of each tree, drawn again on access."""
        check_is_fitted(self)
        return [self._samples.rows_of_tree(t).astype(np.int32) for t in range(self._model.n_trees)]

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        return upgrade_forest(state)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_estimators", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in vars(self)

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.estimators_)

    def __getitem__(self, index: int) -> Any:
        """Return a tree."""
        return self.estimators_[index]

    def __iter__(self) -> Any:
        """Iterate over the trees."""
        return iter(self.estimators_)

    # Private names of scikit-learn's forests, which its tests read.

    @property
    def _n_samples_bootstrap(self) -> int | None:
        return self._samples.n_drawn

    @property
    def _sample_weight(self) -> Any:
        return self._samples.weights

    # ------------------------------------------------------------------ predictions

    def _read_rows(self, X: Any) -> Any:
        """Convert X to a core table after checking it against the training schema."""
        require_fitted(self)
        return read_for_core(self, X, self._model.schema)

    def _mean_scores(self, X: Any) -> Any:
        """Return the means over the trees, (n_rows, n_outputs * n_classes)."""
        rows = self._read_rows(X)
        return self.fitted_model().mean_scores(rows, effective_n_jobs(self.n_jobs))

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the index of the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_estimators)
            Indices into the arrays of ``estimators_[i].tree_``.
        """
        return self._model.leaves(self._read_rows(X), effective_n_jobs(self.n_jobs))

    def decision_path(self, X: Any) -> tuple[Any, NDArray[np.int64]]:
        """Return the nodes on the path of each row in each tree.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        indicator : csr_matrix of shape (n_rows, n_nodes)
            Ones where a row passes through a node. The nodes of a tree are adjacent columns.
        n_nodes_ptr : ndarray of shape (n_estimators + 1,)
            Index of the first node of each tree, and the number of all nodes.
        """
        rows = self._read_rows(X)
        n_threads = effective_n_jobs(self.n_jobs)
        paths = [tree.decision_path_table(rows, n_threads) for tree in self._model.trees()]
        counts = self._model.store.core.node_counts()
        return sp.hstack(paths).tocsr(), np.concatenate([[0], np.cumsum(counts)])

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of each feature, as selected by `importance_type`."""
        check_is_fitted(self)
        if self.importance_type != "impurity" and "_importances" in vars(self):
            return self._importances
        shares = np.empty((self._model.n_trees, self.n_features_in_))
        self._model.store.core.importances(effective_n_jobs(self.n_jobs), shares)
        shares = shares[shares.any(axis=1)]  # trees with at least one split
        if len(shares) == 0:
            return np.zeros(self.n_features_in_)
        mean = shares.mean(axis=0)
        return mean / mean.sum()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def make_training_table(estimator: Any, X: Any, y: Any, workers: Workers) -> tuple[Table, Schema]:
    """Read the training rows by their own schema, or by that of the rows of all workers."""
    if workers.schema is None:
        return fit_table(estimator, X, y, categorical_features=estimator.categorical_features)
    return read_table(estimator, X, workers.schema), workers.schema


def _balanced_weights(classes: Any, labels: Any, sample_weight: Any) -> dict[Any, float]:
    """Return class weights such that all classes have the same total weight."""
    if sample_weight is not None:
        weighted = sample_weight > 0
        labels, sample_weight = labels[weighted], sample_weight[weighted]
        classes = classes[np.isin(classes, labels)]
    weights = compute_class_weight(
        "balanced", classes=classes, y=labels, sample_weight=sample_weight
    )
    return dict(zip(classes, weights, strict=True))


def tree_progress(hook: Any, n_trees: int) -> Any:
    """Convert the core's progress, which counts rows in finished leaves, to trees."""
    if hook is None:
        return None
    return lambda done, total: hook(min(n_trees, done * n_trees // max(total, 1)), n_trees)


# Attributes of a fit that a later fit without warm_start drops first, so that a failed fit never
# leaves attributes of two fits.
_FITTED = (
    "_model",
    "_samples",
    "_out_of_bag",
    "_center",
    "_importances",
    "_targets",
    "_estimators",
    "oob_score_",
    "_held_out",
    "_group_scale",
    "_group_factors",
)
