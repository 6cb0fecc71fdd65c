"""Bagging of any estimator; Spinney's trees are grown in the core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any
from warnings import warn

import numpy as np
import sklearn.ensemble as sk
from sklearn.base import _fit_context, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state, compute_sample_weight, get_tags
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from spinney import _core
from spinney.conformal.group_limits import categories_of
from spinney.conformal.mixins import HeldOut, IntervalMixin, SetMixin, subsample_rows
from spinney.data.core_table import core_table, core_targets, read_for_core
from spinney.data.sample_weights import check_weights, scale_extreme
from spinney.data.sklearn_versions import check_sample_weight, validate_data
from spinney.data.table import Schema, fit_table
from spinney.data.warm_start import check_same_classes, check_same_columns, check_same_outputs
from spinney.forest.base import tree_progress
from spinney.forest.member_trees import LazyTrees, tree_of_subset
from spinney.forest.out_of_bag import grows_whole, mean_of_all_trees, votes_of_all_trees
from spinney.forest.sampling import n_rows_drawn
from spinney.models.forest_store import ForestStore
from spinney.models.methods import ModelMethods
from spinney.models.tree_ensembles import AveragedTrees
from spinney.runtime.progress import progress_hook
from spinney.runtime.rollback import all_or_nothing
from spinney.runtime.threads import effective_n_jobs
from spinney.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from spinney.tree.base import BaseTree, encode_classes, encode_numbers
from spinney.tree.options import n_features_drawn, tree_options

__all__ = ["BaggingClassifier", "BaggingRegressor"]

_NATIVE = (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
_MAX_SAMPLES = [
    Interval(Integral, 1, None, closed="left"),
    Interval(RealNotInt, 0, 1, closed="right"),
    None,
]
_MAX_OOB_ROWS = 2_500  # out-of-bag rows for intervals and prediction sets
_MAX_COUNTS = 16_000_000  # bootstrap counts (trees x rows) in memory at a time

_PARAMETERS = """estimator : estimator, default=None
        The learner; None means a fully grown Spinney tree. Spinney's trees are grown in the core
        and support categories and missing values; any other scikit-learn estimator works too.
    n_estimators : int, default=10
        Number of learners.
    max_samples : int or float, default=None
        Rows drawn for each learner: a number, or a fraction of all rows; None means all rows.
    max_features : int or float, default=1.0
        Columns drawn for each learner: a number, or a fraction of all columns.
    bootstrap : bool, default=True
        Whether rows are drawn with replacement.
    bootstrap_features : bool, default=False
        Whether columns are drawn with replacement.
    oob_score : bool or callable, default=False
        Whether to compute the out-of-bag score: {score}, or ``oob_score(y_true, y_pred)``.
        Requires `bootstrap`.
    warm_start : bool, default=False
        Whether `fit` keeps the existing learners and adds more, up to `n_estimators`.
    n_jobs : int, default=None
        Number of threads; None means the value of `spinney.set_num_threads` for Spinney's trees.
    random_state : int, RandomState instance or None, default=None
        Seed for the samples of rows and columns, and for the learners.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs."""


class _Bagging(ModelMethods):
    """Base class of both bagging estimators: growth and prediction in the core."""

    _model: AveragedTrees
    _estimators: Any

    def _is_native(self) -> bool:
        return "_model" in vars(self)

    def fitted_model(self) -> AveragedTrees:
        """Return the fitted model as an immutable value, without the estimator's methods.

        Returns
        -------
        AveragedTrees
            The trees; `voting` is that of the estimator at the time of the call.
        """
        return replace(super().fitted_model(), hard=getattr(self, "voting", "soft") == "hard")

    @property
    def categories_(self) -> list[Any]:
        """Categories of each column, None where it is numeric; for Spinney's trees only."""
        if not self._is_native():
            raise AttributeError(
                f"{type(self).__name__} has no categories_: it is not fitted, or its learners are "
                "not Spinney's trees"
            )
        return list(self._model.schema.categories)

    def _default_estimator(self) -> Any:
        raise NotImplementedError

    def _get_estimator(self) -> Any:
        return self._default_estimator() if self.estimator is None else self.estimator  # type: ignore[attr-defined]

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Fit the learners, each on its own sample of the rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Rows are drawn in proportion to these weights; None means equal weights. With
            scikit-learn before 1.8, learners other than Spinney's trees get the weights instead.
        **fit_params : object
            Passed on to the learners, with scikit-learn's metadata routing.

        Returns
        -------
        estimator
            Itself.
        """
        if not (self.warm_start and self._is_native()):  # type: ignore[attr-defined]
            for name in ("_model", "_estimators", "_features", "oob_curve_", "_held_out"):
                self.__dict__.pop(name, None)
        base = self._get_estimator()
        kind_fits = is_classifier(base) == is_classifier(self)
        if type(base) in _NATIVE and kind_fits and not fit_params:
            with all_or_nothing(self):
                return self._fit_native(base, X, y, sample_weight)
        if callable(self.oob_score):  # type: ignore[attr-defined]
            raise ValueError(
                "oob_score must be a bool; a callable is supported only for Spinney's trees, got "
                f"estimator {type(base).__name__}"
            )
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, _num_samples(X))
        with all_or_nothing(self, "_others"):
            return super().fit(X, y, sample_weight=sample_weight, **fit_params)  # type: ignore[misc]

    def _fit_native(self: Any, base: BaseTree, X: Any, y: Any, sample_weight: Any) -> Any:
        n_threads = effective_n_jobs(self.n_jobs)
        if not self.bootstrap and self.oob_score:
            raise ValueError("Out of bag estimation only available if bootstrap=True")
        if self.warm_start and self.oob_score:
            raise ValueError("Out of bag estimate only available if warm_start=False")
        vars(self).pop("oob_score_", None)
        before: AveragedTrees | None = vars(self).get("_model")
        n_before = 0 if before is None else before.n_trees
        n_more = self.n_estimators - n_before
        if n_more < 0:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={n_before} when warm_start==True"
            )
        base._validate_params()
        declared = base.categorical_features
        if isinstance(declared, str) and declared == "from_dtype":
            declared = self.categorical_features
        table, schema = fit_table(self, X, y, categorical_features=declared)
        n_rows = table.n_rows
        if before is not None:
            check_same_columns(before.schema, schema)
        weights, exponent = None, 0
        if sample_weight is not None:
            weights = check_sample_weight(
                sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
            )
            weights, exponent = scale_extreme(weights)
            if not weights.sum() > 0:
                raise ValueError("sample_weight leaves no row of positive weight")
            if not self.bootstrap:
                warn(
                    f"When fitting {type(self).__name__} with sample_weight it is recommended to "
                    f"use bootstrap=True, got {self.bootstrap}.",
                    stacklevel=3,
                )
        y = _flatten_targets(y, classes=is_classifier(self))
        known_classes = vars(self).get("classes_")
        if is_classifier(self):
            codes, labels = encode_classes(self, y)
            class_weight = None
            if base.class_weight is not None:
                class_weight = compute_sample_weight(base.class_weight, labels)
            n_classes: Any = self.n_classes_
        else:
            codes, class_weight, n_classes = encode_numbers(base, y), None, []
        check_consistent_length(np.empty((n_rows, 0)), codes)
        self.n_outputs_ = codes.shape[1]
        if before is not None:
            check_same_outputs(before.n_outputs, self.n_outputs_)
            if is_classifier(self):
                check_same_classes(known_classes, self.classes_)
        self._n_samples = n_rows
        self._sample_weight = weights
        self._max_samples = n_rows_drawn(n_rows, self.max_samples, weights, exponent)
        if not self.bootstrap and self._max_samples > n_rows:
            raise ValueError(
                f"Effective max_samples={self._max_samples} must be <= n_samples={n_rows} to be "
                "able to sample without replacement."
            )
        self._max_features = _n_columns_drawn(self.max_features, self.n_features_in_)
        if n_more == 0:
            warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                stacklevel=3,
            )
        self.estimator_ = base
        random_state = check_random_state(self.random_state)
        if n_before > 0:
            random_state.randint(np.iinfo(np.int32).max, size=n_before)
        seeds = random_state.randint(np.iinfo(np.int32).max, size=n_more)
        old_seeds = self._seeds if n_before > 0 else np.empty(0, dtype=seeds.dtype)

        if before is not None:
            store = before.store
        else:
            inner_values = base.criterion == "absolute_error" or base.monotonic_cst is not None
            store = ForestStore(
                base.criterion, n_classes, self.n_outputs_, inner_values, schema.n_categories
            )
            self._features = []
        keeps_some = bool(self.bootstrap) and not self.warm_start
        centre = np.zeros(codes.shape[1]) if is_classifier(self) else codes.mean(axis=0)
        subset = not self.oob_score and n_rows > _MAX_OOB_ROWS
        tree_options = self._tree_options(base, schema, n_rows, n_classes)
        create_options = partial(
            _core.ForestOptions,
            tree=tree_options,
            n_threads=n_threads,
            ccp_alpha=float(base.ccp_alpha),
            hard_votes=getattr(self, "voting", "soft") == "hard",
            out_of_bag=bool(self.oob_score) or keeps_some,
            centre=centre.tolist(),  # squared predictions are centred for accuracy
            followed=subsample_rows(n_rows, _MAX_OOB_ROWS).tolist() if subset else [],
        )
        rows = core_table(table, schema)
        targets = core_targets(codes, n_classes, class_weight)
        out_of_bag = _core.OutOfBag()
        hook = progress_hook(self)
        prepared = _core.PreparedTable(rows, tree_options.random_splits, n_threads, False)
        # Grown in batches to limit the memory of the counts, which scikit-learn's sampling gives.
        batch = max(1, min(n_more, max(n_threads, _MAX_COUNTS // max(n_rows, 1))))
        for first in range(0, n_more, batch):
            own = seeds[first : first + batch]
            counts, features = self._draw_samples(own)
            all_columns = self._max_features == self.n_features_in_ and not self.bootstrap_features
            _core.grow_forest(
                store.core,
                prepared,
                targets,
                create_options(first_tree=n_before + first, n_trees=len(own)),
                None,
                counts,
                None if all_columns else np.array(features, dtype=np.int32),
                out_of_bag,
                _offset_hook(hook, first, n_more),
                np.array([_tree_seed(seed) for seed in own], dtype=np.uint64),
            )
            self._features = self._features + features
        self._seeds = np.concatenate([old_seeds, seeds])
        created = vars(self).get("_estimators")
        self._estimators = None if created is None else created.extended(len(store))
        if is_classifier(self):
            self._codes = np.arange(int(self.n_classes_[0]))
            self.classes_, self.n_classes_ = self.classes_[0], int(self.n_classes_[0])
        self._model = AveragedTrees(store, schema, self.classes_ if is_classifier(self) else None)
        if self.oob_score:
            self._score_out_of_bag(codes, out_of_bag)
        held = self._collect_out_of_bag(base, codes, centre, out_of_bag) if keeps_some else None
        if held is not None and is_classifier(self) and schema.has_categories:
            held = replace(held, categories=categories_of(table.take(held.rows), schema))
        self._held_out = held
        return self

    def _collect_out_of_bag(
        self: Any, base: Any, codes: Any, centre: Any, out_of_bag: Any
    ) -> HeldOut | None:
        """Return out-of-bag predictions for conformal prediction, None without rows."""
        counts = out_of_bag.n_trees > 0
        if self._sample_weight is not None:
            counts &= self._sample_weight > 0
        rows = np.flatnonzero(counts)
        rows = rows[subsample_rows(len(rows))]
        if not len(rows):
            return None
        predicted = out_of_bag.sums.reshape(len(codes), -1)[rows]
        predicted = predicted / out_of_bag.n_trees[rows, None]
        truth = codes[rows]
        weights = None if self._sample_weight is None else self._sample_weight[rows]
        n_trees = out_of_bag.n_trees[rows]
        if is_classifier(self):
            truth = truth[:, 0].astype(np.int32)
            if self.voting == "hard" or grows_whole(base):
                predicted = votes_of_all_trees(predicted, truth, n_trees, self._model.n_trees)
        else:
            squares = out_of_bag.squares.reshape(len(codes), -1)[rows] / n_trees[:, None]
            with np.errstate(over="ignore", invalid="ignore"):
                variance = squares - (predicted - centre) ** 2
            predicted = mean_of_all_trees(
                predicted, truth, variance, n_trees, self._model.n_trees, weights=weights
            )
            if self.n_outputs_ == 1:
                truth, predicted = truth[:, 0], predicted[:, 0]
        return HeldOut("rows out of the bag", truth, predicted, weights=weights, rows=rows)

    def _reason_without_rows(self) -> str:
        return " (out-of-bag rows need Spinney's trees, bootstrap=True and warm_start=False)"

    def _tree_options(self: Any, base: Any, schema: Schema, n_rows: int, n_classes: Any) -> Any:
        # The tree's max_features is relative to the columns drawn for it.
        drawn = n_features_drawn(base.max_features, self._max_features)
        return tree_options(
            base,
            schema,
            n_rows,
            n_outputs=self.n_outputs_,
            n_classes=n_classes,
            max_features=min(drawn, self._max_features),
            coarse=True,
            narrow_thresholds=True,
        )

    def _draw_samples(self: Any, seeds: Any) -> tuple[Any, list[Any]]:
        """Draw samples as scikit-learn does; return row counts and columns per learner."""
        counts = np.empty((len(seeds), self._n_samples), dtype=np.uint32)
        columns = []
        for i, seed in enumerate(seeds):
            features, rows = self._draw_sample(seed)
            counts[i] = np.bincount(rows, minlength=self._n_samples)
            columns.append(np.asarray(features))
        return counts, columns

    def _draw_sample(self: Any, seed: Any) -> tuple[Any, Any]:
        """Draw the columns and rows of one learner."""
        random_state = check_random_state(seed)
        n_features, n_rows, weights = self.n_features_in_, self._n_samples, self._sample_weight
        features = _draw(random_state, n_features, self._max_features, self.bootstrap_features)
        if weights is None:
            rows = _draw(random_state, n_rows, self._max_samples, self.bootstrap)
        else:
            shares = weights / np.sum(weights)
            rows = random_state.choice(n_rows, self._max_samples, self.bootstrap, shares)
        return features, rows

    def _get_estimators_indices(self: Any) -> Iterator[tuple[Any, Any]]:
        if not self._is_native():
            return super()._get_estimators_indices()  # type: ignore[misc, no-any-return]
        return (self._draw_sample(seed) for seed in self._seeds)

    def _fit(self, X: Any, y: Any, max_samples: Any = None, **options: Any) -> Any:
        # scikit-learn before 1.8 needs a number of rows.
        max_samples = _num_samples(X) if max_samples is None else max_samples
        return super()._fit(X, y, max_samples=max_samples, **options)  # type: ignore[misc]

    @property
    def estimators_(self) -> Any:
        """The learners; Spinney's trees are created on first access."""
        if not self._is_native():
            if "_others" not in vars(self):
                raise AttributeError(f"{type(self).__name__} is not fitted: it has no estimators_")
            return self._others
        if vars(self).get("_estimators") is None:
            self._estimators = LazyTrees(self._model.n_trees, self._make_fitted_tree)
        return self._estimators

    @estimators_.setter
    def estimators_(self, value: Any) -> None:
        self._others = value

    @property
    def estimators_features_(self) -> Any:
        """The columns that each learner uses."""
        return self._features if self._is_native() else self._other_features

    @estimators_features_.setter
    def estimators_features_(self, value: Any) -> None:
        self._other_features = value

    def _make_fitted_tree(self: Any, index: int) -> Any:
        tree = type(self.estimator_)(**self.estimator_.get_params(deep=False))
        tree.random_state = _tree_seed(self._seeds[index])
        model = self._model
        tree_of_subset(tree, model.store.tree(index), self._features[index], model.schema)
        if is_classifier(self):
            tree.classes_ = self._codes
            tree.n_classes_ = self.n_classes_
        return tree

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop("_estimators", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = get_tags(self._get_estimator()).input_tags.sparse
        return tags

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        if "_store" not in state:
            return state
        state = dict(state)
        store, schema = state.pop("_store"), state.pop("_schema")
        return {**state, "_model": AveragedTrees(store, schema, state.get("classes_"))}

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_native() or "_others" in vars(self)

    def _mean_prediction(self: Any, X: Any) -> Any:
        """Return the mean prediction of the trees, (n_rows, n_outputs * n_classes)."""
        rows = read_for_core(self, X, self._model.schema)
        return self.fitted_model().mean_scores(rows, effective_n_jobs(self.n_jobs))

    def _score_out_of_bag(self: Any, codes: Any, out_of_bag: Any) -> None:
        raise NotImplementedError


class BaggingClassifier(_Bagging, SetMixin, sk.BaggingClassifier):
    __doc__ = f"""Bagging for classification: learners fitted on samples of the rows, averaged.

    Parameters and attributes are those of scikit-learn's class of the same name, the base class;
    additions are marked *new*.

    Parameters
    ----------
    {_PARAMETERS.format(score="accuracy")}
    voting : {{"soft", "hard"}}, default="soft"
        *New*. "soft" averages class probabilities if the learner has `predict_proba`; "hard"
        counts the votes of the learners.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        *New*. For Spinney's trees: categorical columns, unless the tree's own parameter is set.
    callbacks : callable or list of callables, default=None
        *New*. Called during the fit of Spinney trees with (trees done, all trees); an exception
        stops the fit.

    Attributes
    ----------
    estimator_ : estimator
        The learner.
    estimators_ : list of estimators
        The fitted learners.
    estimators_samples_, estimators_features_ : list of ndarray
        The rows and columns that each was fitted on.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_classes_ : int
        The number of classes.
    categories_ : list of (ndarray or None)
        The categories of each column, None where it is numeric; with Spinney's trees only.
    n_features_in_ : int
        Columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The column names, if all of them are strings.
    oob_score_ : float
        Out-of-bag score, if `oob_score`.
    oob_decision_function_ : ndarray of shape (n_rows, n_classes)
        Out-of-bag class probabilities, if `oob_score`; NaN for rows that are in every sample.
    oob_curve_ : ndarray of shape (n_estimators,)
        *New*. Out-of-bag accuracy after 1, 2, … trees, if `oob_score`; Spinney's trees only.

    Examples
    --------
    >>> from spinney.datasets import load_spam
    >>> from spinney.ensemble import BaggingClassifier
    >>> X, y = load_spam(return_X_y=True, split="train")
    >>> X_test, y_test = load_spam(return_X_y=True, split="test")
    >>> bagging = BaggingClassifier(n_estimators=50, random_state=0).fit(X, y)
    >>> bagging.score(X_test, y_test) > 0.93
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **sk.BaggingClassifier._parameter_constraints,
        "max_samples": _MAX_SAMPLES,
        "oob_score": ["boolean", callable],
        "voting": [StrOptions({"soft", "hard"})],
        "categorical_features": BaseTree._parameter_constraints["categorical_features"],
        "callbacks": BaseTree._parameter_constraints["callbacks"],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: Any = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: Any = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        voting: str = "soft",
        categorical_features: Any = "from_dtype",
        callbacks: Any = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            n_estimators=n_estimators,
            max_samples=max_samples,
            max_features=max_features,
            bootstrap=bootstrap,
            bootstrap_features=bootstrap_features,
            oob_score=oob_score,
            warm_start=warm_start,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.voting = voting
        self.categorical_features = categorical_features
        self.callbacks = callbacks

    def _default_estimator(self) -> Any:
        return DecisionTreeClassifier()

    def _validate_y(self, y: Any) -> Any:
        known = vars(self).get("classes_")
        codes = super()._validate_y(y)
        if self.warm_start and known is not None and "_others" in vars(self):
            check_same_classes(known, self.classes_)
        return codes

    def _score_out_of_bag(self, codes: Any, out_of_bag: Any) -> None:
        sums = out_of_bag.sums.reshape(len(codes), -1)
        total = sums.sum(axis=1, keepdims=True)
        if (total == 0).any():
            _warn_no_oob_score()
        with np.errstate(invalid="ignore"):
            self.oob_decision_function_ = sums / total
        score = self.oob_score if callable(self.oob_score) else accuracy_score
        self.oob_score_ = score(codes[:, 0], sums.argmax(axis=1))
        self.oob_curve_ = out_of_bag.curve

    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Predict class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        **params : object
            Passed on to the learners, with scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Mean of the learners' probabilities, or fractions of their votes.
        """
        check_is_fitted(self)
        if self._is_native():
            return self._mean_prediction(X)
        if self.voting == "hard":
            return self._votes(X)
        return super().predict_proba(X, **params)

    def _votes(self, X: Any) -> Any:
        X = self._validate_rows(X)
        votes = np.zeros((X.shape[0], self.n_classes_))
        for learner, features in zip(self.estimators_, self.estimators_features_, strict=True):
            votes[np.arange(len(votes)), learner.predict(X[:, features])] += 1
        return votes / len(self.estimators_)

    def _validate_rows(self, X: Any) -> Any:
        return validate_data(
            self,
            X,
            accept_sparse=["csr", "csc"],
            dtype=None,
            ensure_all_finite=False,
            reset=False,
        )

    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        **params : object
            Passed on to the learners, with scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The logarithm of `predict_proba`.
        """
        check_is_fitted(self)
        if self._is_native() or self.voting == "hard":
            with np.errstate(divide="ignore"):
                return np.log(self.predict_proba(X))
        return super().predict_log_proba(X, **params)


class BaggingRegressor(_Bagging, IntervalMixin, sk.BaggingRegressor):
    __doc__ = f"""Bagging for regression: learners fitted on samples of the rows, averaged.

    Parameters and attributes are those of scikit-learn's class of the same name, the base class;
    additions are marked *new*.

    Parameters
    ----------
    {_PARAMETERS.format(score="R²")}
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        *New*. For Spinney's trees: categorical columns, unless the tree's own parameter is set.
    callbacks : callable or list of callables, default=None
        *New*. Called during the fit of Spinney trees with (trees done, all trees); an exception
        stops the fit.

    Attributes
    ----------
    estimator_ : estimator
        The learner.
    estimators_ : list of estimators
        The fitted learners.
    estimators_samples_, estimators_features_ : list of ndarray
        The rows and columns that each was fitted on.
    categories_ : list of (ndarray or None)
        The categories of each column, None where it is numeric; with Spinney's trees only.
    n_features_in_ : int
        Columns seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The column names, if all of them are strings.
    oob_score_ : float
        Out-of-bag score, if `oob_score`.
    oob_prediction_ : ndarray of shape (n_rows,)
        Out-of-bag predictions, if `oob_score`.
    oob_curve_ : ndarray of shape (n_estimators,)
        *New*. Out-of-bag R² after 1, 2, … trees, if `oob_score`; Spinney's trees only.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import BaggingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bagging = BaggingRegressor(n_estimators=50, oob_score=True, random_state=0).fit(X, y)
    >>> bagging.oob_score_ > 0.35
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **sk.BaggingRegressor._parameter_constraints,
        "max_samples": _MAX_SAMPLES,
        "oob_score": ["boolean", callable],
        "categorical_features": BaseTree._parameter_constraints["categorical_features"],
        "callbacks": BaseTree._parameter_constraints["callbacks"],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: Any = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: Any = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        categorical_features: Any = "from_dtype",
        callbacks: Any = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            n_estimators=n_estimators,
            max_samples=max_samples,
            max_features=max_features,
            bootstrap=bootstrap,
            bootstrap_features=bootstrap_features,
            oob_score=oob_score,
            warm_start=warm_start,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.categorical_features = categorical_features
        self.callbacks = callbacks

    def _default_estimator(self) -> Any:
        return DecisionTreeRegressor()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = get_tags(self._get_estimator()).target_tags.multi_output
        return tags

    def _score_out_of_bag(self, codes: Any, out_of_bag: Any) -> None:
        n_trees = out_of_bag.n_trees
        if (n_trees == 0).any():
            _warn_no_oob_score()
        values = out_of_bag.sums.reshape(len(codes), -1) / np.maximum(n_trees, 1)[:, None]
        one = self.n_outputs_ == 1
        self.oob_prediction_ = values[:, 0] if one else values
        score = self.oob_score if callable(self.oob_score) else r2_score
        self.oob_score_ = score(codes[:, 0] if one else codes, self.oob_prediction_)
        self.oob_curve_ = out_of_bag.curve

    def predict(self, X: Any, **params: Any) -> Any:
        """Predict regression targets.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        **params : object
            Passed on to the learners, with scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Mean of the learners' predictions.
        """
        check_is_fitted(self)
        if not self._is_native():
            return super().predict(X, **params)
        values = self._mean_prediction(X)
        return values[:, 0] if self.n_outputs_ == 1 else values


def _flatten_targets(y: Any, *, classes: bool) -> Any:
    """Flatten a column vector with a warning, as scikit-learn's bagging does."""
    if y is not None and (classes or np.asarray(y).ndim == 1 or np.asarray(y).shape[1:] == (1,)):
        return column_or_1d(y, warn=True)
    return y


def _draw(random_state: Any, n: int, n_drawn: int, replace: bool) -> Any:
    """Draw `n_drawn` of the integers below `n`."""
    if replace:
        return random_state.randint(0, n, n_drawn)
    return sample_without_replacement(n, n_drawn, random_state=random_state)


def _tree_seed(seed: Any) -> int:
    """Return the random_state that scikit-learn gives to the learner with this seed."""
    return int(check_random_state(int(seed)).randint(np.iinfo(np.int32).max))


def _n_columns_drawn(max_features: Any, n_features: int) -> int:
    drawn = int(max_features * n_features) if isinstance(max_features, float) else max_features
    if drawn > n_features:
        raise ValueError("max_features must be <= n_features")
    return max(1, int(drawn))


def _warn_no_oob_score() -> None:
    warn(
        "Some inputs do not have OOB scores. This probably means too few estimators were used to "
        "compute any reliable oob estimates.",
        stacklevel=5,
    )


def _offset_hook(hook: Any, first: int, n_trees: int) -> Any:
    """Return a progress hook that adds the trees of earlier batches."""
    if hook is None:
        return None
    return tree_progress(lambda done, _: hook(min(n_trees, first + done), n_trees), n_trees - first)
