"""Rosenblatt's perceptron."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.linear_model
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.extmath import row_norms

from spinney import _core
from spinney.conformal.mixins import MarginSets
from spinney.linear_model._row_products import RowwiseDecision
from spinney.models.methods import ModelMethods
from spinney.runtime.threads import effective_n_jobs

__all__ = ["Perceptron"]

Floats = NDArray[np.float64]

LARGEST_SEED = np.iinfo(np.int32).max


class Perceptron(RowwiseDecision, MarginSets, ModelMethods, sklearn.linear_model.Perceptron):
    """Rosenblatt's perceptron: each misclassified row updates the normal, w += y x.

    For dense rows the fit equals scikit-learn's; several classes are fitted one against the rest.
    In addition mistakes are counted, and for separable classes Novikoff's bound of their number is
    available. The variants "average" and "pocket" are for classes that are not separable. A fit
    ends after the first pass without a mistake, because later passes change nothing.

    Parameters
    ----------
    variant : {"last", "average", "pocket"}, default="last"
        The resulting hyperplane. "last": the last one. "average": the average of those after each
        row (Freund and Schapire). "pocket": among the evaluated hyperplanes, the one with the least
        weight of misclassified training rows (Gallant). A hyperplane is evaluated at the end of a
        pass, and after a longer run of correct rows than all before.
    penalty : {"l2", "l1", "elasticnet"} or None, default=None
        Penalty of the coefficients; only with `variant="last"`. With a penalty or
        `early_stopping`, scikit-learn fits the model, and mistakes are not counted.
    alpha : float, default=0.0001
        Factor of the penalty.
    l1_ratio : float, default=0.15
        Share of the l1 norm in the elastic net.
    fit_intercept : bool, default=True
        Whether to fit an intercept: the coefficient of a constant feature 1.
    max_iter : int, default=1000
        Maximum number of passes over the rows.
    tol : float or None, default=1e-3
        A fit ends after `n_iter_no_change` consecutive passes whose mean loss max(0, −y f(x)) is
        not lower than the previous minimum by at least this. None: only a pass without mistakes
        ends it.
    shuffle : bool, default=True
        Whether rows are shuffled before each pass.
    verbose : int, default=0
        Whether scikit-learn prints its progress (with a penalty or `early_stopping`).
    eta0 : float, default=1.0
        Factor of the updates.
    n_jobs : int, default=None
        Number of threads for several classes; None is `spinney.get_num_threads()`. The result does
        not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the shuffles.
    early_stopping : bool, default=False
        Whether to stop when the score on a validation set does not improve.
    validation_fraction : float, default=0.1
        Share of the validation rows.
    n_iter_no_change : int, default=5
        Number of passes without improvement before a fit ends.
    class_weight : dict, "balanced" or None, default=None
        Factors of the updates by rows of each class.
    warm_start : bool, default=False
        Whether `fit` continues from the last hyperplane.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Normals: one for two classes, otherwise one for each class against the rest.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    n_mistakes_ : ndarray of shape (1,) or (n_classes,)
        Number of updates in all passes.
    radius_ : float
        Length R of the longest row (with a further feature of 1 if there is an intercept).
    margin_ : ndarray of shape (1,) or (n_classes,)
        γ = min y f(x) / ‖(coef, intercept)‖ over the training rows: the distance of this hyperplane
        from the nearest row, in the space with the constant feature. Not positive if it does not
        separate the classes. Other hyperplanes may have a larger margin.
    mistake_bound_ : ndarray of shape (1,) or (n_classes,)
        Novikoff's bound (R / γ)² of `n_mistakes_`. With weights, the bound is multiplied by the
        ratio of the largest to the smallest weight. Infinite if the hyperplane does not separate
        the classes, or if the passes did not start from zero.
    n_iter_ : int
        Number of passes; the maximum over classes.
    t_ : float
        `n_iter_` times rows, plus 1.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all are strings.

    See Also
    --------
    HalfspaceClassifier : Decides whether two classes are separable.

    Notes
    -----
    Sparse rows are treated like dense rows; scikit-learn multiplies updates of the intercept by
    0.01 for sparse rows. A weight multiplies the updates by its row, which differs
    from repeating the row. Rows of weight zero are ignored. With `variant="average"`, `partial_fit`
    averages over the rows of the last call.

    Examples
    --------
    >>> from spinney.linear_model import Perceptron
    >>> X = [[2.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [0.0, -2.0]]
    >>> model = Perceptron().fit(X, [1, 1, 0, 0])
    >>> model.predict(X).tolist()
    [1, 1, 0, 0]
    >>> bool(model.n_mistakes_[0] <= model.mistake_bound_[0])
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **sklearn.linear_model.Perceptron._parameter_constraints,
        "variant": [StrOptions({"last", "average", "pocket"})],
    }

    coef_: Any
    intercept_: Any
    classes_: Any

    def __init__(
        self,
        *,
        variant: str = "last",
        penalty: str | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
    ) -> None:
        super().__init__(
            penalty=penalty,
            alpha=alpha,
            l1_ratio=l1_ratio,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            tol=tol,
            shuffle=shuffle,
            verbose=verbose,
            eta0=eta0,
            n_jobs=n_jobs,
            random_state=random_state,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            class_weight=class_weight,
            warm_start=warm_start,
        )
        self.variant = variant

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        coef_init: Any = None,
        intercept_init: Any = None,
        sample_weight: Any = None,
    ) -> Perceptron:
        """Fit by passes over the rows until there is no mistake or no improvement.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Classes.
        coef_init, intercept_init : array-like, default=None
            The hyperplane to start from; zero if not given.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of the updates by each row, at least 0.

        Returns
        -------
        self
        """
        self._check_variant()
        for name in ("n_mistakes_", "radius_", "margin_", "mistake_bound_"):
            self.__dict__.pop(name, None)
        if not (self.warm_start and hasattr(self, "_planes")):
            self.__dict__.pop("_planes", None)
        if coef_init is not None or intercept_init is not None:
            self.__dict__.pop("_planes", None)
        self._from_zero = coef_init is None and intercept_init is None
        self._from_zero = self._from_zero and not hasattr(self, "_planes")
        super().fit(X, y, coef_init, intercept_init, sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Perceptron:
        """Continue with one pass over the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Classes.
        classes : array-like of shape (n_classes,), default=None
            All classes, in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of the updates by each row, at least 0.

        Returns
        -------
        self
        """
        self._check_variant()
        self._from_zero = not hasattr(self, "classes_")
        if self._from_zero:
            for name in ("_planes", "n_mistakes_"):
                self.__dict__.pop(name, None)
        super().partial_fit(X, y, classes, sample_weight)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_variant(self) -> None:
        if self._uses_sklearn_solver() and self.variant != "last":
            raise ValueError(
                f"variant: expected 'last' with a penalty or early_stopping, got {self.variant!r}"
            )

    def _uses_sklearn_solver(self) -> bool:
        return bool(self.penalty is not None or self.early_stopping)

    # scikit-learn's `fit` validates, allocates the coefficients and calls one of these two methods;
    # `others` are arguments of versions before 1.8.

    def _fit_binary(
        self,
        X: Any,
        y: Any,
        *,
        alpha: Any,
        sample_weight: Any,
        learning_rate: Any,
        max_iter: int,
        **others: Any,
    ) -> None:
        if self._uses_sklearn_solver():
            super()._fit_binary(
                X,
                y,
                alpha=alpha,
                sample_weight=sample_weight,
                learning_rate=learning_rate,
                max_iter=max_iter,
                **others,
            )
            return
        random = check_random_state(self.random_state)
        random.randint(1, LARGEST_SEED)  # scikit-learn draws an unused number here
        factors = self._expanded_class_weight[::-1][None]
        self._run(
            X,
            (y == self.classes_[1])[None],
            factors,
            sample_weight=sample_weight,
            randoms=[random],
            max_iter=max_iter,
        )

    def _fit_multiclass(
        self,
        X: Any,
        y: Any,
        *,
        alpha: Any,
        learning_rate: Any,
        sample_weight: Any,
        max_iter: int,
        **others: Any,
    ) -> None:
        if self._uses_sklearn_solver():
            super()._fit_multiclass(
                X,
                y,
                alpha=alpha,
                learning_rate=learning_rate,
                sample_weight=sample_weight,
                max_iter=max_iter,
                **others,
            )
            return
        seeds = check_random_state(self.random_state).randint(LARGEST_SEED, size=len(self.classes_))
        randoms = [np.random.RandomState(seed) for seed in seeds]
        for random in randoms:
            random.randint(1, LARGEST_SEED)
        weights = np.asarray(self._expanded_class_weight)
        factors = np.column_stack([weights, np.ones_like(weights)])
        self._run(
            X,
            y == self.classes_[:, None],
            factors,
            sample_weight=sample_weight,
            randoms=randoms,
            max_iter=max_iter,
        )

    def _run(
        self,
        X: Any,
        positive: NDArray[np.bool_],
        factors: Floats,
        *,
        sample_weight: Any,
        randoms: list[Any],
        max_iter: int,
    ) -> None:
        """Fit one hyperplane per row of `positive`; `factors` are class weights."""
        weights = np.asarray(sample_weight, dtype=np.float64)
        if (weights < 0).any():
            raise ValueError(f"sample_weight: expected weights >= 0, got {weights.min()}")
        if not weights.any():
            raise ValueError("sample_weight: expected a positive weight, got zeros only")
        weighted = np.where(positive, factors[:, :1], factors[:, 1:]) * weights
        steps = np.where(positive, 1.0, -1.0) * weighted * float(self.eta0)
        coef = np.reshape(self.coef_, (len(positive), -1))
        starts: Floats = np.column_stack([coef, self.intercept_]).astype(np.float64)
        if getattr(self, "_planes", starts).shape == starts.shape:
            starts = getattr(self, "_planes", starts)
        sparse_rows = sparse.issparse(X)
        n_rows, n_features = X.shape
        planes, results, mistakes, passes, overflow = _core.run_perceptrons(
            X.data if sparse_rows else X.ravel(),
            X.indices if sparse_rows else None,
            X.indptr if sparse_rows else None,
            n_rows,
            n_features,
            np.ascontiguousarray(steps),
            np.ascontiguousarray(starts),
            np.array([random.randint(LARGEST_SEED) for random in randoms], dtype=np.uint32),
            self.variant,
            bool(self.fit_intercept),
            bool(self.shuffle),
            int(max_iter),
            int(self.n_iter_no_change),
            -np.inf if self.tol is None else float(self.tol),
            effective_n_jobs(self.n_jobs),
        )
        if overflow:
            raise ValueError(
                "X and sample_weight: expected values whose sums do not overflow; got an overflow "
                f"in pass {passes.max()}; scaling input data with StandardScaler might help"
            )
        self._planes = planes.reshape(starts.shape)
        results = results.reshape(starts.shape)
        self.coef_ = np.ascontiguousarray(results[:, :-1]).astype(X.dtype)
        self.intercept_ = results[:, -1].astype(X.dtype)
        self.n_iter_ = int(passes.max())
        self.t_ += self.n_iter_ * n_rows
        self.n_mistakes_ = mistakes + getattr(self, "n_mistakes_", 0)
        self._set_bound(X, np.where(positive, 1.0, -1.0), weighted, results)

    def _set_bound(self, X: Any, sides: Floats, weighted: Floats, results: Floats) -> None:
        """Set the radius, the margins and Novikoff's bounds."""
        counted = (weighted > 0).any(axis=0)
        if not counted.all():
            X, sides, weighted = X[counted], sides[:, counted], weighted[:, counted]
        with np.errstate(over="ignore"):
            lengths = np.hypot(row_norms(X), float(self.fit_intercept))
        self.radius_ = float(lengths.max(initial=0.0))
        # If squares of huge values overflow, the margin is undefined: report zero.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scores = np.asarray(X @ results[:, :-1].T + results[:, -1]).T * sides
            self.margin_ = np.nan_to_num(
                scores.min(axis=1, initial=np.inf) / np.linalg.norm(results, axis=1), nan=0.0
            )
            spread = weighted.max(axis=1, initial=0.0) / np.where(
                weighted > 0, weighted, np.inf
            ).min(axis=1, initial=np.inf)
            self.mistake_bound_ = np.where(
                (self.margin_ > 0) & self._from_zero,
                (self.radius_ / self.margin_) ** 2 * spread,
                np.inf,
            )
