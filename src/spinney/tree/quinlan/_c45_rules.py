"""C4.5rules: the paths of a tree as simplified, selected and ordered rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney import _core
from spinney.conformal.mixins import SetsOnRequest
from spinney.data.core_table import core_table, core_targets
from spinney.data.sklearn_versions import check_sample_weight
from spinney.data.table import Schema, Table, read_table
from spinney.models.methods import ModelMethods
from spinney.runtime.threads import effective_n_jobs
from spinney.tree.export._rules import CategoryCondition, Condition, NumericCondition, Rule
from spinney.tree.quinlan._c45 import C45Classifier

__all__ = ["C45Rules"]


@dataclass(frozen=True)
class _Test:
    """One condition: low < x <= high on a numeric column, or a set of category codes."""

    feature: int
    low: float = -np.inf
    high: float = np.inf
    codes: frozenset[int] | None = None

    def holds(self, table: Table) -> NDArray[np.bool_]:
        matrix = table.matrix
        column = table.columns[self.feature] if matrix is None else matrix[:, self.feature]  # type: ignore[index]
        if self.codes is None:
            return np.asarray((column > self.low) & (column <= self.high))
        # The last flag stands for all larger codes.
        flags = np.zeros(max(self.codes, default=0) + 2, dtype=np.bool_)
        flags[list(self.codes)] = True
        return np.asarray(flags[np.minimum(column, len(flags) - 1)])


@dataclass(frozen=True)
class _Candidate:
    tests: tuple[_Test, ...]
    label: int

    def covers(self, table: Table) -> NDArray[np.bool_]:
        out = np.ones(table.n_rows, dtype=np.bool_)
        for test in self.tests:
            out &= test.holds(table)
        return out


class C45Rules(SetsOnRequest, ClassifierMixin, ModelMethods, BaseEstimator):
    """Rules from a C4.5 tree: shorter than the tree, and often slightly more accurate.

    Each path of the unpruned tree becomes a rule. Conditions are removed from a rule one by one
    while its expected error rate does not increase. For each class, the subset of its rules with
    the minimum description length (including exceptions) is selected. Classes whose rules make the
    fewest errors come first. The first rule that covers a row predicts it; rows that no rule covers
    get the default class.

    Parameters
    ----------
    estimator : C45Classifier, default=None
        The tree to grow; None means ``C45Classifier(confidence=None)``, without pruning.
    confidence : float, default=0.25
        Confidence level for the expected errors of a rule, as in `C45Classifier`.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Categorical columns, as in `C45Classifier`.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.

    Attributes
    ----------
    rules_ : list of Rule
        The rules, in the order in which they are tried. ``n_samples`` and ``value`` refer to the
        training rows for which a rule is the first to hold.
    default_class_ : object
        Prediction for rows that no rule covers.
    estimator_ : C45Classifier
        The tree.
    classes_, n_classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A condition does not hold for a missing value. C4.5 searches for the subset of rules by
    simulated annealing. Spinney uses a deterministic greedy search that adds or removes one rule at
    a time.

    References
    ----------
    Quinlan, C4.5: Programs for Machine Learning, 1993, chapter 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney.tree import C45Rules
    >>> iris = load_iris(as_frame=True)
    >>> names = iris.target_names[iris.target]
    >>> print(C45Rules().fit(iris.data, names).to_text())
    IF petal width (cm) <= 0.6 THEN setosa (p=1.00, n=50)
    IF 0.6 < petal width (cm) <= 1.7 AND petal length (cm) <= 4.9 THEN versicolor (p=0.98, n=48)
    IF petal width (cm) > 1.7 THEN virginica (p=0.98, n=46)
    IF petal length (cm) > 4.9 THEN virginica (p=0.67, n=6)
    ELSE setosa (p=1.00, n=0)
    """

    classes_: Any
    n_classes_: int
    n_features_in_: int

    _parameter_constraints: dict[str, Any] = {
        "estimator": [C45Classifier, None],
        "confidence": [Interval(Real, 0.0, 1.0, closed="neither")],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        confidence: float = 0.25,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.confidence = confidence
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> C45Rules:
        """Grow a tree and derive rules from it.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows, with categories and missing values as they are.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights; None means equal weights.

        Returns
        -------
        C45Rules
            Itself.
        """
        for name in ("rules_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        base = C45Classifier(confidence=None) if self.estimator is None else clone(self.estimator)
        base.set_params(n_jobs=self.n_jobs)
        if base.categorical_features == "from_dtype":
            base.set_params(categorical_features=self.categorical_features)
        self.estimator_ = base.fit(X, y, sample_weight)
        for name in ("classes_", "n_classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(base, name):
                setattr(self, name, getattr(base, name))
        self._schema: Schema = base._schema
        table = read_table(base, X, self._schema, accept_sparse=False)
        labels = np.searchsorted(self.classes_, np.asarray(y).reshape(-1)).astype(np.uint32)
        weights = check_sample_weight(sample_weight, np.empty((table.n_rows, 0)), dtype=np.float64)
        candidates = self._simplify_paths(table, labels, weights)
        chosen = _order_rules(
            [
                _select_rules(
                    [rule for rule in candidates if rule.label == label],
                    table,
                    labels == label,
                    weights,
                    self._test_bits(table),
                )
                for label in range(self.n_classes_)
            ],
            table,
            labels,
            weights,
            float(self.confidence),
        )
        self._set_rules(chosen, table, labels, weights)
        return self

    def _simplify_paths(
        self, table: Table, labels: NDArray[np.uint32], weights: NDArray[np.float64]
    ) -> list[_Candidate]:
        """Return the paths of the tree without superfluous conditions and duplicates."""
        paths = _paths(self.estimator_)
        tests = [test for path in paths for test in path.tests]
        n_codes = [0 if values is None else len(values) for values in self._schema.categories]
        allowed = [np.zeros(n_codes[test.feature], dtype=np.uint8) for test in tests]
        for test, flags in zip(tests, allowed, strict=True):
            flags[list(test.codes or ())] = 1
        kept, _, _ = _core.simplify_rules(
            core_table(table, self._schema),
            core_targets(labels[:, np.newaxis], [self.n_classes_], weights),
            float(self.confidence),
            effective_n_jobs(self.n_jobs),
            np.array([path.label for path in paths], dtype=np.uint32),
            np.cumsum([0, *(len(path.tests) for path in paths)], dtype=np.int64),
            np.array([test.feature for test in tests], dtype=np.int32),
            np.array([test.low for test in tests], dtype=np.float64),
            np.array([test.high for test in tests], dtype=np.float64),
            np.cumsum([0, *map(len, allowed)], dtype=np.int64),
            np.concatenate([*allowed, np.empty(0, dtype=np.uint8)]),
        )
        out: dict[_Candidate, None] = {}
        at = 0
        for path in paths:
            flags = kept[at : at + len(path.tests)]
            at += len(path.tests)
            left = tuple(t for t, flag in zip(path.tests, flags, strict=True) if flag)
            if left:  # a rule without conditions is covered by the default class
                out[_Candidate(left, path.label)] = None
        return list(out)

    def _test_bits(self, table: Table) -> NDArray[np.float64]:
        """Return the description length, in bits, of a condition on each column."""
        bits = np.empty(table.n_features)
        for f, values in enumerate(self._schema.categories):
            if values is None:
                column = table.columns[f] if table.matrix is None else table.matrix[:, f]  # type: ignore[index]
                n_values = len(np.unique(column[~np.isnan(column)]))
                bits[f] = 1 + np.log2(max(n_values - 1, 1))  # the side and the threshold
            else:
                bits[f] = np.log2(max(len(values), 1))
        return bits + np.log2(table.n_features)

    def _set_rules(
        self,
        chosen: list[_Candidate],
        table: Table,
        labels: NDArray[np.uint32],
        weights: NDArray[np.float64],
    ) -> None:
        """Set `rules_`, the default, and class fractions of rows by their first rule."""
        self._candidates = chosen
        first = _first_rule(chosen, table)
        counts = np.zeros((len(chosen) + 1, self.n_classes_))
        np.add.at(counts, (first, labels), weights)
        whole = np.bincount(labels, weights=weights, minlength=self.n_classes_)
        rest = counts[-1] if counts[-1].sum() > 0 else whole
        default = int(np.argmax(rest))
        self.default_class_ = self.classes_[default]
        fractions = np.empty_like(counts)
        for i, row in enumerate(counts):
            label = chosen[i].label if i < len(chosen) else default
            fractions[i] = row / row.sum() if row.sum() > 0 else np.arange(len(row)) == label
        # A rule predicts its own class, even if another class is as frequent among its rows.
        self._predicted_labels = np.array([*(rule.label for rule in chosen), default])
        self._fractions = fractions
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x[{i}]" for i in range(self.n_features_in_)]
        n_rows = np.bincount(first[weights > 0], minlength=len(chosen) + 1)
        self.rules_: list[Rule] = []
        for i, rule in enumerate([*chosen, _Candidate((), default)]):
            p = fractions[i]
            self.rules_.append(
                Rule(
                    conditions=_conditions(rule, self._schema, [str(name) for name in names]),
                    prediction=self.classes_[rule.label],
                    label=str(self.classes_[rule.label]),
                    probability=float(p[rule.label]),
                    value=(tuple(map(float, p)),),
                    n_samples=int(n_rows[i]),
                    weight=float(counts[i].sum()),
                    impurity=float(-(p * np.log2(np.where(p > 0, p, 1))).sum()) + 0.0,
                    node=i,
                )
            )
        self._default_rule = self.rules_.pop()

    # -------------------------------------------------------------------------- predictions

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        if "_answers" in state:  # language: allow
            state["_predicted_labels"] = state.pop("_answers")  # language: allow
        return state

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        return read_table(self, X, self._schema, accept_sparse=False)

    def apply(self, X: Any) -> NDArray[np.intp]:
        """Return the index of the first rule that covers each row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Index into ``rules_``; ``len(rules_)`` if no rule covers the row.
        """
        table = self._read(X)
        return _first_rule(self._candidates, table)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of the first rule that covers each row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes.
        """
        rules = self.apply(X)
        return np.asarray(self.classes_[self._predicted_labels[rules]])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the class fractions of the training rows with the same first rule.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        rules = self.apply(X)
        return np.asarray(self._fractions[rules])

    def to_text(self) -> str:
        """Return the rules as text, one per line.

        Returns
        -------
        str
            The rules; the last line is the default class.
        """
        check_is_fitted(self)
        default = self._default_rule
        last = f"ELSE {default.label} (p={default.probability:.2f}, n={default.n_samples})"
        return "\n".join([*map(str, self.rules_), last])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rules_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _paths(model: C45Classifier) -> list[_Candidate]:
    """Return the paths to the leaves that contain training rows."""
    tree = model.tree_
    out = []
    stack: list[tuple[int, tuple[_Test, ...]]] = [(0, ())]
    while stack:
        node, tests = stack.pop()
        if tree.is_leaf(node):
            if tree.weight[node] > 0:
                out.append(_Candidate(tests, int(np.argmax(tree.fractions[node]))))
            continue
        f = int(tree.feature[node])
        children = tree.children_of(node).tolist()
        if tree.is_categorical(node):
            branches = [_Test(f, codes=frozenset(codes)) for codes in tree.codes_of_branches(node)]
        else:
            branches = [_Test(f, high=tree.threshold[node]), _Test(f, low=tree.threshold[node])]
        for child, branch in reversed(list(zip(children, branches, strict=True))):
            stack.append((child, _with_test(tests, branch)))
    return out


def _with_test(tests: tuple[_Test, ...], new: _Test) -> tuple[_Test, ...]:
    """Append a condition; it replaces an older limit of the same kind and column."""
    if new.codes is not None:
        return (*tests, new)
    out = []
    for test in tests:
        same = test.feature == new.feature and test.codes is None
        if same and np.isfinite(test.high) and np.isfinite(new.high):
            continue  # limits only get narrower along a path
        if same and np.isfinite(test.low) and np.isfinite(new.low):
            continue
        out.append(test)
    return (*out, new)


def _log2_choose(n: Any, k: Any) -> Any:
    return (gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) / np.log(2)


def _select_rules(
    rules: list[_Candidate],
    table: Table,
    is_class: NDArray[np.bool_],
    weights: NDArray[np.float64],
    test_bits: NDArray[np.float64],
) -> list[_Candidate]:
    """Select the rules of one class with the minimum description length."""
    if not rules:
        return []
    covered_rows = [np.flatnonzero(rule.covers(table)) for rule in rules]
    starts = np.cumsum([0, *map(len, covered_rows)])
    shape = (len(rules), table.n_rows)
    cover = sp.csr_array((np.ones(starts[-1]), np.concatenate(covered_rows), starts), shape=shape)
    # C4.5 counts half the bits of the conditions, because rules overlap and have no order.
    cost = np.array(
        [
            0.5
            * (
                sum(test_bits[test.feature] for test in rule.tests)
                - gammaln(len(rule.tests) + 1) / np.log(2)
            )
            for rule in rules
        ]
    )
    used = np.zeros(len(rules), dtype=np.bool_)
    times = np.zeros(len(weights))  # number of used rules that cover each row
    all_weight, all_own = weights.sum(), weights[is_class].sum()

    def bits(covered: Any, own: Any, theory: Any) -> Any:
        """Return the total length: rules, rows covered wrongly, rows of the class missed."""
        wrong, missed = covered - own, np.maximum(all_own - own, 0.0)
        rest = np.maximum(all_weight - covered, missed)
        return theory + _log2_choose(covered, wrong) + _log2_choose(rest, missed)

    best = float(bits(0.0, 0.0, 0.0))
    while True:
        # Adding a rule covers rows that no rule covers; removing one uncovers rows covered once.
        flip = np.where(used, -1.0, 1.0)
        fresh, alone = weights * (times == 0), weights * (times == 1)
        gained = np.where(used, cover @ alone, cover @ fresh) * flip
        own = np.where(used, cover @ (alone * is_class), cover @ (fresh * is_class)) * flip
        covered_now, own_now = weights[times > 0].sum(), weights[is_class & (times > 0)].sum()
        lengths = bits(
            np.clip(covered_now + gained, 0.0, all_weight),
            np.clip(own_now + own, 0.0, all_own),
            cost[used].sum() + flip * cost,
        )
        change = int(np.argmin(lengths))
        if not lengths[change] < best - 1e-9:
            return [rule for rule, flag in zip(rules, used, strict=True) if flag]
        best = float(lengths[change])
        used[change] = not used[change]
        times += flip[change] * cover[[change]].toarray().ravel()


def _order_rules(
    by_class: list[list[_Candidate]],
    table: Table,
    labels: NDArray[np.uint32],
    weights: NDArray[np.float64],
    confidence: float,
) -> list[_Candidate]:
    """Order rules: classes with the fewest false positives first, then by error rate."""
    left = weights.copy()
    remaining = {label: rules for label, rules in enumerate(by_class) if rules}
    covers = {
        label: np.any([rule.covers(table) for rule in rules], axis=0)
        for label, rules in remaining.items()
    }
    out: list[_Candidate] = []
    while remaining:
        wrong = {c: float(left[covers[c] & (labels != c)].sum()) for c in remaining}
        label = min(remaining, key=lambda c: (wrong[c], c))

        def expected_error_rate(rule: _Candidate) -> float:
            covered = rule.covers(table)
            n = float(weights[covered].sum())
            errors = float(weights[covered & (labels != rule.label)].sum())
            return (errors + _core.extra_errors(n, errors, confidence)) / n if n > 0 else 1.0

        out += sorted(remaining.pop(label), key=expected_error_rate)
        left[covers[label]] = 0.0
    return out


def _first_rule(rules: list[_Candidate], table: Table) -> NDArray[np.intp]:
    first = np.full(table.n_rows, len(rules), dtype=np.intp)
    for i in range(len(rules) - 1, -1, -1):
        first[rules[i].covers(table)] = i
    return first


def _conditions(rule: _Candidate, schema: Schema, names: list[str]) -> tuple[Condition, ...]:
    """Return the conditions of a rule, merged to one for each column."""
    merged: dict[int, _Test] = {}
    for test in rule.tests:
        old = merged.get(test.feature, _Test(test.feature, codes=test.codes))
        merged[test.feature] = replace(
            old, low=max(old.low, test.low), high=min(old.high, test.high)
        )
    out: list[Condition] = []
    for f, test in merged.items():
        values = schema.categories[f]
        if values is None:
            low = None if test.low == -np.inf else float(test.low)
            high = None if test.high == np.inf else float(test.high)
            out.append(NumericCondition(f, names[f], low, high, missing=False))
            continue
        codes = test.codes or frozenset()
        out.append(
            CategoryCondition(
                feature=f,
                name=names[f],
                categories=tuple(value for code, value in enumerate(values) if code in codes),
                excluded=tuple(value for code, value in enumerate(values) if code not in codes),
                missing=False,
            )
        )
    return tuple(out)
