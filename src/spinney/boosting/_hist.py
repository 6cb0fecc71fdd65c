"""Boosters with the parameters of scikit-learn's histogram boosters."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils._param_validation import Interval, StrOptions

from spinney.boosting._classifier import GradientBoostingClassifier
from spinney.boosting._fit_plan import Continuation, TrainingData
from spinney.boosting._hist_predictors import as_predictor
from spinney.boosting._interaction_sets import interaction_sets
from spinney.boosting._regressor import GradientBoostingRegressor
from spinney.boosting._settings import Settings
from spinney.data.table import Schema, Table, clip_infinities
from spinney.distributed.workers import Workers
from spinney.models.boosted_trees import BoostedTrees

__all__ = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]


class _HistNames:
    """Parameter names and behaviour of scikit-learn's histogram boosters.

    They accept infinite values, treat negative categories as missing, and raise an error if a
    column has more categories than bins. Early stopping keeps the rounds without improvement.
    """

    max_iter: int
    max_bins: Any
    scoring: Any
    early_stopping: Any
    n_iter_no_change: Any
    tol: float
    categories_: list[Any]
    _model: BoostedTrees
    _continuation: Continuation

    _accepts_infinity = True
    _splits_as_sklearn = True
    _round_names = ("max_iter", "n_iter_")

    growth = "best_first"
    min_hessian_leaf = 1e-3
    min_split_gain = 0.0
    l1_regularization = 0.0
    subsample: Any = 1.0
    sampling = "uniform"
    max_features_tree = 1.0
    max_features_level = 1.0
    n_folds: Any = 1
    max_set_categories: Any = 64
    n_jobs: int | None = None
    callbacks: Any = None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The training rows. Missing values and categorical columns need no preparation.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows. With ``early_stopping=False``, integer weights that sum to at most
            200,000 give the predictions of repeated rows, to the last bit.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, default=None
            Validation rows for early stopping, instead of rows of X.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        given = [value is not None for value in (X_val, y_val)]
        if given == [True, False]:
            raise ValueError("X_val is provided, but y_val was not provided.")
        if given == [False, True]:
            raise ValueError("y_val is provided, but X_val was not provided.")
        if not given[0]:
            if sample_weight_val is not None:
                raise ValueError("sample_weight_val is provided, but X_val was not provided.")
            return super().fit(X, y, sample_weight)  # type: ignore[misc]
        if self.early_stopping is False:
            raise ValueError(
                "X_val and y_val are passed to fit while at the same time early_stopping is False. "
                "When passing X_val and y_val to fit, early_stopping should be set to either "
                "'auto' or True."
            )
        eval_set = (X_val, y_val, sample_weight_val)
        return super().fit(X, y, sample_weight, eval_set=eval_set)  # type: ignore[misc]

    def _requested_rounds(self) -> int:
        return int(self.max_iter)

    def _draw_seed(self, stream: Any) -> int:
        return int(stream.randint(np.iinfo(np.uint32).max, dtype="u8"))

    def _read_training_table(self, X: Any, y: Any, workers: Workers) -> tuple[Any, Schema]:
        table, schema = super()._read_training_table(X, y, workers)  # type: ignore[misc]
        if not schema.has_categories:
            return table, schema
        columns, categories = list(table.columns), list(schema.categories)
        for f, values in enumerate(categories):
            if values is None:
                continue
            if all(isinstance(value, Real) for value in values.tolist()):
                n_negative = int(np.sum(values < 0))  # the first ones, as values are sorted
                columns[f] = np.maximum(columns[f] - n_negative, -1)
                categories[f] = values[n_negative:]
            n_values = len(categories[f])
            if n_values > self.max_bins:
                name = f"at index {f}" if schema.names is None else repr(schema.names[f])
                raise ValueError(
                    f"Categorical feature {name} is expected to have a cardinality <= "
                    f"{self.max_bins} but actually has a cardinality of {n_values}."
                )
        return (
            Table(table.n_rows, table.n_features, columns=columns),
            Schema(schema.names, tuple(categories)),
        )

    def _read_rows(self, X: Any) -> Any:
        if type(X) is np.ndarray and X.dtype.kind == "f":
            X = clip_infinities(self, X)
        return super()._read_rows(X)  # type: ignore[misc]

    def _find_scorer(self) -> Any:
        return None if self.scoring == "loss" else check_scoring(self, scoring=self.scoring)

    def _should_stop(self, scores: Any) -> bool:
        """Return whether none of the last `n_iter_no_change` scores is better by `tol`."""
        n = self.n_iter_no_change
        return len(scores) > n and max(scores[-n:]) <= scores[-n - 1] + self.tol

    def _find_best(self, settings: Settings, losses: Any, n_before: int) -> tuple[int, int | None]:
        scores = [-loss for loss in losses]
        # The fit that is continued may have stopped at `n_before`.
        for end in range(max(1, n_before + 1), len(scores) + 1):
            if self._should_stop(scores[:end]):
                return end, end
        return len(scores), None

    def _check_interaction_cst(self, n_features: int) -> list[set[int]] | None:
        """Return the sets of columns that may interact; None: all columns."""
        sets = interaction_sets(self.interaction_cst, n_features)  # type: ignore[attr-defined]
        return [set(columns) for columns in sets] if sets else None

    def _raw_predict(self, X: Any) -> NDArray[np.float64]:
        """Return the raw scores, (n_rows, n_trees_per_iteration_)."""
        return np.asarray(self._raw(X))  # type: ignore[attr-defined]

    @property
    def _random_seed(self) -> int:
        return self._continuation.seed

    @property
    def _baseline_prediction(self) -> NDArray[np.float64]:
        return np.asarray(self._model.baseline).reshape(1, -1)

    @property
    def _predictors(self) -> list[list[Any]]:
        """Trees of each round in scikit-learn's form, for tools that need this attribute."""
        trees = [as_predictor(tree, self.categories_) for tree in self._model.trees()]
        per_round = self._model.trees_per_round
        return [trees[t : t + per_round] for t in range(0, len(trees), per_round)]

    @property
    def is_categorical_(self) -> Any:
        """Mask of the categorical columns; None if there are none."""
        is_categorical = self._model.schema.is_categorical
        return is_categorical if is_categorical.any() else None

    def _stops_early(self, data: TrainingData) -> bool:
        if self.early_stopping == "auto":
            return data.given.eval_set is not None or data.n_rows_of_all > 10_000
        return bool(self.early_stopping)

    @property
    def n_trees_per_iteration_(self) -> int:
        """Number of trees of a round: 1, or with more than two classes one per class."""
        return self._model.n_scores

    _constraints: dict[str, Any] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "scoring": [StrOptions({"loss", *get_scorer_names()}), callable, None],
    }


class HistGradientBoostingClassifier(_HistNames, GradientBoostingClassifier):
    """Gradient boosting with the parameters of scikit-learn's histogram booster.

    It is `GradientBoostingClassifier` for code that uses scikit-learn's class of the same name:
    only the import changes. Like in scikit-learn, early stopping keeps the rounds without
    improvement, infinite values are beyond all others, negative categories are missing, and a
    column has at most `max_bins` categories.

    Parameters
    ----------
    loss : {"log_loss"} or callable, default="log_loss"
        As in `GradientBoostingClassifier`.
    learning_rate : float, default=0.1
        Factor of the leaf values of each tree.
    max_iter : int, default=100
        Number of rounds, like `n_estimators` of `GradientBoostingClassifier`.
    max_leaf_nodes, max_depth, min_samples_leaf, l2_regularization, max_features, max_bins
        As in `GradientBoostingClassifier`.
    categorical_features, monotonic_cst, interaction_cst, warm_start, early_stopping
        As in `GradientBoostingClassifier`.
    scoring : str, callable or None, default="loss"
        Criterion of early stopping: "loss", the name of a scikit-learn scorer, a function like one,
        or None for the method `score`.
    validation_fraction, n_iter_no_change, tol, verbose, random_state, class_weight
        As in `GradientBoostingClassifier`.
    """

    _parameter_constraints: dict[str, Any] = {
        **GradientBoostingClassifier._parameter_constraints,
        **_HistNames._constraints,
    }

    def __init__(
        self,
        loss: Any = "log_loss",
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: Any = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        class_weight: Any = None,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.class_weight = class_weight


class HistGradientBoostingRegressor(_HistNames, GradientBoostingRegressor):
    """Gradient boosting with the parameters of scikit-learn's histogram booster.

    It is `GradientBoostingRegressor` for code that uses scikit-learn's class of the same name:
    only the import changes. Like in scikit-learn, early stopping keeps the rounds without
    improvement, infinite values are beyond all others, negative categories are missing, and a
    column has at most `max_bins` categories.

    Parameters
    ----------
    loss : str, default="squared_error"
        As in `GradientBoostingRegressor`.
    quantile : float or None, default=None
        Level of the loss "quantile", between 0 and 1.
    learning_rate : float, default=0.1
        Factor of the leaf values of each tree.
    max_iter : int, default=100
        Number of rounds, like `n_estimators` of `GradientBoostingRegressor`.
    max_leaf_nodes, max_depth, min_samples_leaf, l2_regularization, max_features, max_bins
        As in `GradientBoostingRegressor`.
    categorical_features, monotonic_cst, interaction_cst, warm_start, early_stopping
        As in `GradientBoostingRegressor`.
    scoring : str, callable or None, default="loss"
        Criterion of early stopping: "loss", the name of a scikit-learn scorer, a function like one,
        or None for the method `score`.
    validation_fraction, n_iter_no_change, tol, verbose, random_state
        As in `GradientBoostingRegressor`.
    """

    tweedie_power = 1.5

    _parameter_constraints: dict[str, Any] = {
        **GradientBoostingRegressor._parameter_constraints,
        **_HistNames._constraints,
        "quantile": [Interval(Real, 0.0, 1.0, closed="both"), None],
    }

    def __init__(
        self,
        loss: Any = "squared_error",
        *,
        quantile: float | None = None,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: Any = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    def _level(self) -> Any:
        if self.loss == "quantile" and self.quantile is None:
            raise ValueError("quantile must be a number from 0 to 1 if loss='quantile'; got None")
        return 0.9 if self.quantile is None else float(self.quantile)
