"""AdaBoost for classification: weighted votes of weak learners on reweighted rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any
from warnings import warn

import numpy as np
import sklearn.ensemble as sk
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.ensemble._base import BaseEnsemble
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from spinney import _core
from spinney.adaboost._adaboost import Learners
from spinney.conformal.mixins import SetsOnRequest
from spinney.data.core_table import core_table, core_targets, read_for_core
from spinney.data.sample_weights import check_weights
from spinney.data.sklearn_versions import safe_indexing
from spinney.data.table import fit_table
from spinney.models.forest_store import ForestStore
from spinney.models.tree_ensembles import VotingTrees
from spinney.runtime.progress import progress_hook
from spinney.runtime.rollback import all_or_nothing
from spinney.runtime.threads import effective_n_jobs
from spinney.tree import DecisionTreeClassifier, ExtraTreeClassifier
from spinney.tree.base import encode_classes
from spinney.tree.options import tree_options

__all__ = ["AdaBoostClassifier"]

_NATIVE = (DecisionTreeClassifier, ExtraTreeClassifier)
_TINY = np.finfo(np.float64).eps
_ROUNDING = 1e-12  # tolerance for an error that is no better than chance, as in the core


class AdaBoostClassifier(SetsOnRequest, Learners, sk.AdaBoostClassifier):
    """AdaBoost: weak learners that vote, trained on reweighted rows.

    After each round, misclassified rows gain weight. Under the new weights the learner is no better
    than chance, so the next learner must differ.

    Parameters
    ----------
    estimator : estimator, default=None
        The weak learner; None means a stump, a tree with one split. Spinney's trees run in the
        core: their columns are encoded once for all rounds, and they support categories and missing
        values. Any other classifier works too. For one without ``sample_weight``, rows are drawn in
        proportion to the weights instead, with a warning.
    n_estimators : int, default=50
        Largest number of rounds. Boosting stops early if a learner makes no error, or is no better
        than chance.
    learning_rate : float, default=1.0
        Factor of the weight of each learner.
    algorithm : {"SAMME", "M1", "real"}, default="SAMME"
        "SAMME": votes; a learner must be better than a guess among the K classes (for two classes,
        this is the original AdaBoost). "M1": votes; the accuracy of a learner must exceed 1/2 for
        any number of classes. "real": sums of the logarithms of the learners' probabilities
        (SAMME.R; for two classes Real AdaBoost).
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Categorical columns, for Spinney's trees: "from_dtype" uses the dtypes of a frame; otherwise
        a mask, indices or names.
    random_state : int, RandomState instance or None, default=None
        Seed of the learners, and of the draws of rows for learners without weights.
    n_jobs : int, default=None
        Number of threads for Spinney's trees; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar while a long fit runs.
    callbacks : callable or list of callables, default=None
        Called during fit with (rounds done, all rounds).

    Attributes
    ----------
    estimator_ : estimator
        The weak learner.
    estimators_ : sequence of estimators
        The learners.
    estimator_weights_ : ndarray of shape (n_estimators,)
        Weights of the learners, 0 for omitted rounds. With two classes and a learning rate of 1,
        the weight is log((1 − ε)/ε), twice the usual α.
    estimator_errors_ : ndarray of shape (n_estimators,)
        Errors ε of the learners under their training weights, 1 for omitted rounds.
    categories_ : list of (ndarray or None)
        The categories of each column, None where it is numeric; with Spinney's trees only.
    gammas_ : ndarray of shape (n_rounds,)
        Edges of the learners: 1/2 − ε.
    training_error_bound_ : ndarray of shape (n_rounds,)
        Upper bound of the (weighted) training error after each round; at a learning rate of 1, the
        product of Z = 2 sqrt(ε (1 − ε)). For two classes, and for "M1".
    classes_, n_classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    feature_importances_ : ndarray of shape (n_features,)
        Mean importance of each column over the learners, weighted by `estimator_weights_`.

    See Also
    --------
    GradientBoostingClassifier : With ``loss="exponential"``, gradient boosting of the same loss.

    Notes
    -----
    Two identities hold. Under the weights after a round, the learner of this round has an error of
    exactly 1/2. The training error is bounded: training error ≤ ∏ Z ≤ exp(−2 Σ γ²).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from spinney.ensemble import AdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostClassifier(n_estimators=100).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.95)
    True
    >>> bool(1 - model.score(X[:400], y[:400]) <= model.training_error_bound_[-1])
    True
    """

    classes_: Any
    n_classes_: Any
    _parameter_constraints: dict[str, Any] = {
        **sk.AdaBoostClassifier._parameter_constraints,
        "algorithm": [StrOptions({"SAMME", "M1", "real"})],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "callbacks": [None, callable, list, tuple],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        algorithm: str = "SAMME",
        categorical_features: Any = "from_dtype",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        super().__init__(
            estimator=estimator,
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            random_state=random_state,
        )
        self.algorithm = algorithm
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    # ------------------------------------------------------------------ fit

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the learners, one per round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows. With Spinney's trees, missing values and categorical columns need no
            preparation.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Initial row weights; None means equal weights.

        Returns
        -------
        AdaBoostClassifier
            Itself.
        """
        with all_or_nothing(self):
            self._drop_learners()
            BaseEnsemble._validate_estimator(self, default=DecisionTreeClassifier(max_depth=1))
            base = self.estimator_
            plain = getattr(base, "class_weight", None) is None
            if type(base) in _NATIVE and plain and base.ccp_alpha == 0:
                return self._fit_native(base, X, y, sample_weight)
            if self.algorithm == "real" and not hasattr(base, "predict_proba"):
                raise TypeError(
                    "algorithm='real': expected an estimator with predict_proba, got "
                    f"{type(base).__name__}"
                )
            self._resamples = not has_fit_parameter(base, "sample_weight")
            if self._resamples:
                warn(
                    f"{type(base).__name__} takes no sample_weight: each round draws rows in "
                    "proportion to their weights",
                    stacklevel=2,
                )
            if sample_weight is not None:
                sample_weight = check_weights(sample_weight, _num_samples(X))
            super().fit(X, y, sample_weight)
            return self

    def _validate_estimator(self) -> None:
        """Do nothing, because `fit` has already set the learner."""

    def _fit_native(self, base: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        n_threads = effective_n_jobs(self.n_jobs)
        base._validate_params()
        declared = base.categorical_features
        if isinstance(declared, str) and declared == "from_dtype":
            declared = self.categorical_features
        table, schema = fit_table(self, X, y, categorical_features=declared)
        n_rows = table.n_rows
        codes, _ = encode_classes(self, column_or_1d(y, warn=True))
        check_consistent_length(np.empty((n_rows, 0)), codes)
        weights = check_weights(sample_weight, n_rows).copy()
        if not weights.sum() > 0:
            raise ValueError("sample_weight leaves no row of positive weight")
        weights /= weights.sum()
        n_classes = self.n_classes_
        store = ForestStore(
            base.criterion,
            n_classes,
            1,
            base.monotonic_cst is not None,
            schema.n_categories,
        )
        options = tree_options(
            base, schema, n_rows, n_outputs=1, n_classes=n_classes, n_threads=n_threads
        )
        random_state = check_random_state(self.random_state)
        seeds = [random_state.randint(np.iinfo(np.int32).max) for _ in range(self.n_estimators)]
        estimator_weights, errors, end = _core.adaboost(
            store.core,
            core_table(table, schema),
            core_targets(codes, n_classes, weights.copy()),
            options,
            self.algorithm,
            float(self.learning_rate),
            np.array(seeds, dtype=np.uint64),
            weights,
            progress_hook(self),
        )
        if len(store) == 0:
            raise ValueError(
                "BaseClassifier in AdaBoostClassifier ensemble is worse than random, ensemble can "
                "not be fit."
            )
        if end == "overflow":
            warn(
                "Sample weights have reached infinite values, at iteration "
                f"{len(estimator_weights) - 1}, "
                "causing overflow. Iterations stopped. Try lowering the learning rate.",
                stacklevel=4,
            )
        self.estimator_weights_ = np.zeros(self.n_estimators)
        self.estimator_weights_[: len(estimator_weights)] = estimator_weights
        self.estimator_errors_ = np.ones(self.n_estimators)
        self.estimator_errors_[: len(errors)] = errors
        self.classes_, self.n_classes_ = self.classes_[0], int(n_classes[0])
        self._seeds = seeds
        self.replace_model(
            VotingTrees(
                store, schema, self.classes_, self.estimator_weights_, self.algorithm == "real"
            )
        )
        return self

    def _boost(self, iboost: int, X: Any, y: Any, sample_weight: Any, random_state: Any) -> Any:
        """Run one round with an estimator that is not a Spinney tree."""
        estimator = self._make_estimator(random_state=random_state)
        if self._resamples:
            p = sample_weight / sample_weight.sum()
            rows = random_state.choice(len(p), size=len(p), p=p)
            estimator.fit(safe_indexing(X, rows), safe_indexing(y, rows))
        else:
            estimator.fit(X, y, sample_weight=sample_weight)
        if iboost == 0:
            self.classes_ = np.unique(y)
            self.n_classes_ = len(self.classes_)
        incorrect = estimator.predict(X) != y
        error = float(np.average(incorrect, weights=sample_weight))
        if error <= 0:
            return sample_weight, 1.0, 0.0
        last = iboost == self.n_estimators - 1
        n = self.n_classes_
        if self.algorithm == "real":
            if not last:
                logs = np.log(np.maximum(self._probabilities(estimator, X), _TINY))
                own = logs[np.arange(len(y)), np.searchsorted(self.classes_, y)]
                agreement = own - (logs.sum(axis=1) - own) / (n - 1)
                sample_weight = sample_weight * np.exp(
                    -self.learning_rate * (n - 1) / n * agreement
                )
            return sample_weight, 1.0, error
        by_half = self.algorithm == "M1"
        if error >= (0.5 if by_half else 1 - 1 / n) - _ROUNDING:
            self.estimators_.pop(-1)
            if not self.estimators_:
                raise ValueError(
                    "BaseClassifier in AdaBoostClassifier ensemble is worse than random, ensemble "
                    "can not be fit."
                )
            return None, None, None
        weight = self.learning_rate * (
            np.log((1 - error) / error) + (0 if by_half else np.log(n - 1))
        )
        if not last:
            with np.errstate(over="ignore"):
                sample_weight = sample_weight * np.exp(weight * incorrect)
        return sample_weight, weight, error

    def _probabilities(self, estimator: Any, X: Any) -> Any:
        """Return probabilities of all classes; a sample of the rows may lack some classes."""
        probabilities = estimator.predict_proba(X)
        if probabilities.shape[1] == self.n_classes_:
            return probabilities
        out = np.zeros((len(probabilities), self.n_classes_))
        out[:, np.searchsorted(self.classes_, estimator.classes_)] = probabilities
        return out

    def fitted_model(self) -> VotingTrees:
        """Return the fitted model as an immutable value, without the estimator's methods.

        Returns
        -------
        VotingTrees
            The trees, with the present values of `estimator_weights_` and `algorithm`.
        """
        return replace(
            super().fitted_model(),
            weights=self.estimator_weights_,
            real=self.algorithm == "real",
        )

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        if "_store" not in state:
            return state
        state = dict(state)
        state["_model"] = VotingTrees(
            state.pop("_store"),
            state.pop("_schema"),
            state["classes_"],
            state["estimator_weights_"],
            state["algorithm"] == "real",
        )
        return state

    def _make_fitted_tree(self, index: int) -> Any:
        tree = super()._make_fitted_tree(index)
        tree.classes_, tree.n_classes_ = self.classes_, self.n_classes_
        return tree

    # ------------------------------------------------------------------ theory

    @property
    def gammas_(self) -> NDArray[np.float64]:
        """Edges of the learners: 1/2 − ε."""
        check_is_fitted(self)
        return np.asarray(0.5 - self.estimator_errors_[: len(self.estimators_)])

    @property
    def training_error_bound_(self) -> NDArray[np.float64]:
        """Upper bound of the training error after each round."""
        check_is_fitted(self)
        if self.algorithm == "real" or (self.algorithm == "SAMME" and self.n_classes_ > 2):
            raise AttributeError(
                "training_error_bound_ is available for two classes and for algorithm='M1', not "
                f"for {self.algorithm!r} with {self.n_classes_} classes"
            )
        n = len(self.estimators_)
        errors, weights = self.estimator_errors_[:n], self.estimator_weights_[:n]
        # Z = Σ w exp(−α y h), where α is half of the weight; only misclassified rows are scaled.
        sums = (1 - errors + errors * np.exp(weights)) * np.exp(-weights / 2)
        if errors[0] == 0:  # the first learner has no training error, and boosting stopped
            return np.zeros(1)
        return np.asarray(np.cumprod(sums))

    def margins(self, X: Any, y: Any) -> NDArray[np.float64]:
        """Return the margin of the vote for the true class of each row.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The true classes.

        Returns
        -------
        ndarray of shape (n_rows,)
            Share of the vote for the true class minus the largest share of another class, from −1
            to 1; with two classes ``y f(x) / Σ |α|``. Negative if the prediction is wrong.
        """
        check_is_fitted(self)
        if self.algorithm == "real":
            raise ValueError("margins: expected algorithm='SAMME' or 'M1', got 'real'")
        votes = self._votes(X)
        votes = votes / votes.sum(axis=1, keepdims=True)
        y = np.asarray(y)
        codes = np.minimum(np.searchsorted(self.classes_, y), self.n_classes_ - 1)
        if len(y) != len(votes) or not np.array_equal(self.classes_[codes], y):
            raise ValueError("y: expected a class of the training data for each row of X")
        rows = np.arange(len(votes))
        true_share = votes[rows, codes]
        votes[rows, codes] = -np.inf if self.n_classes_ > 1 else 0.0
        return true_share - votes.max(axis=1)

    # ------------------------------------------------------------------ predictions

    def _votes(self, X: Any) -> Any:
        """Return the total votes, (n_rows, n_classes); sums of logarithms with "real"."""
        *_, votes = self._staged_votes(X, whole=True)
        return votes

    def _staged_votes(self, X: Any, whole: bool = False) -> Iterator[Any]:
        n = len(self.estimators_)
        if self._is_native():
            model = self.fitted_model()
            rows = read_for_core(self, X, model.schema)
            votes = np.zeros((rows.n_rows, self.n_classes_))
            ends = [n] if whole else range(1, n + 1)
            first = 0
            for end in ends:
                model.add_votes(rows, (first, end), effective_n_jobs(self.n_jobs), votes)
                first = end
                yield votes
            return
        X = self._check_X(X)
        votes = np.zeros((X.shape[0], self.n_classes_))
        for estimator, weight in zip(self.estimators_, self.estimator_weights_, strict=False):
            if self.algorithm == "real":
                logs = np.log(np.maximum(self._probabilities(estimator, X), _TINY))
                votes += (self.n_classes_ - 1) * (logs - logs.mean(axis=1, keepdims=True))
            else:
                votes[estimator.predict(X)[:, np.newaxis] == self.classes_] += weight
            yield votes

    def _decide(self, votes: Any, n_rounds: int) -> Any:
        """Convert the votes of the first rounds to scores on scikit-learn's scale."""
        n = self.n_classes_
        if n == 1:
            return np.zeros((len(votes), 1))
        total = self.estimator_weights_[:n_rounds].sum()
        scores = votes / total
        if self.algorithm != "real":  # votes for other classes count against a class
            scores = scores - (1 - scores) / (n - 1)
        return scores[:, 1] - scores[:, 0] if n == 2 else scores

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Scores on scikit-learn's scale: for two classes one score, positive for the second.
        """
        check_is_fitted(self)
        return np.asarray(self._decide(self._votes(X), len(self.estimators_)))

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Return the scores of the classes after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Yields
        ------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            `decision_function` of the first 1, 2, … learners.
        """
        check_is_fitted(self)
        for t, votes in enumerate(self._staged_votes(X), 1):
            yield np.asarray(self._decide(votes, t))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Predict classes after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Yields
        ------
        ndarray of shape (n_rows,)
            Predictions of the first 1, 2, … learners.
        """
        for scores in self.staged_decision_function(X):
            if self.n_classes_ == 2:
                yield self.classes_.take(scores > 0, axis=0)
            else:
                yield self.classes_.take(np.argmax(scores, axis=1), axis=0)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the accuracy after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The true classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights; None means equal weights.

        Yields
        ------
        float
            Accuracy of the first 1, 2, … learners.
        """
        for predicted in self.staged_predict(X):
            yield float(np.average(predicted == np.asarray(y), weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.estimator is None or type(self.estimator) in _NATIVE
        return tags
