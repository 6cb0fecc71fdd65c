"""scikit-learn's histogram boosters: other names for the same parameters."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from spinney.ensemble._boosting_classifier import GradientBoostingClassifier
from spinney.ensemble._boosting_regressor import GradientBoostingRegressor

__all__ = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]


class _HistNames:
    """What scikit-learn's histogram boosters call differently, or have no parameter for."""

    max_iter: int
    scoring: Any
    early_stopping: Any

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
        """Boost.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows. Missing values and columns of categories need no preparation.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, default=None
            Rows to watch instead of a part of X.

        Returns
        -------
        estimator
            Itself.
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
        watched = (X_val, y_val, sample_weight_val)
        return super().fit(X, y, sample_weight, eval_set=watched)  # type: ignore[misc]

    def _n_wanted(self) -> int:
        return int(self.max_iter)

    @property
    def is_categorical_(self) -> Any:
        """Which columns are of categories; None if none is."""
        of = self._schema.is_categorical  # type: ignore[attr-defined]
        return of if of.any() else None

    def _stops_early(self, n_rows: int, eval_set: Any) -> bool:
        if self.early_stopping == "auto":
            return eval_set is not None or n_rows > 10_000
        return bool(self.early_stopping)

    @property
    def n_trees_per_iteration_(self) -> int:
        """Trees of a round: one for each of more than two classes."""
        return int(self._n_scores)  # type: ignore[attr-defined]

    _constraints: dict[str, Any] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "scoring": [StrOptions({"loss"}), None],
    }


class HistGradientBoostingClassifier(_HistNames, GradientBoostingClassifier):
    """`GradientBoostingClassifier` with the parameter names of scikit-learn's class of this name.

    For code that imports scikit-learn's histogram booster: change the import. Early stopping looks
    at the loss (`scoring`), and the model keeps the rounds up to the best one.

    Parameters
    ----------
    loss : {"log_loss"}, default="log_loss"
        The loss.
    learning_rate : float, default=0.1
        What each tree's values are multiplied by.
    max_iter : int, default=100
        Rounds; `n_estimators` of `GradientBoostingClassifier`.
    max_leaf_nodes, max_depth, min_samples_leaf, l2_regularization, max_features, max_bins
        As in `GradientBoostingClassifier`.
    categorical_features, monotonic_cst, interaction_cst, warm_start, early_stopping
        As in `GradientBoostingClassifier`.
    scoring : {"loss"} or None, default="loss"
        What early stopping looks at; None is the loss, too.
    validation_fraction, n_iter_no_change, tol, verbose, random_state, class_weight
        As in `GradientBoostingClassifier`.
    """

    _parameter_constraints: dict[str, Any] = {
        **GradientBoostingClassifier._parameter_constraints,
        **_HistNames._constraints,
    }

    def __init__(
        self,
        loss: str = "log_loss",
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
    """`GradientBoostingRegressor` with the parameter names of scikit-learn's class of this name.

    For code that imports scikit-learn's histogram booster: change the import. Early stopping looks
    at the loss (`scoring`), and the model keeps the rounds up to the best one.

    Parameters
    ----------
    loss : str, default="squared_error"
        As in `GradientBoostingRegressor`.
    quantile : float or None, default=None
        Level of the loss "quantile".
    learning_rate : float, default=0.1
        What each tree's values are multiplied by.
    max_iter : int, default=100
        Rounds; `n_estimators` of `GradientBoostingRegressor`.
    max_leaf_nodes, max_depth, min_samples_leaf, l2_regularization, max_features, max_bins
        As in `GradientBoostingRegressor`.
    categorical_features, monotonic_cst, interaction_cst, warm_start, early_stopping
        As in `GradientBoostingRegressor`.
    scoring : {"loss"} or None, default="loss"
        What early stopping looks at; None is the loss, too.
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
            raise ValueError("loss='quantile' needs a quantile: expected a number, got None")
        return 0.9 if self.quantile is None else float(self.quantile)
