"""C4.5's rules: the paths of a tree, simplified, sifted and put in order."""

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
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from spinney import _core
from spinney.conformal.mixins import SetsOnRequest
from spinney.data.core_table import core_table, core_targets
from spinney.data.table import Schema, Table, read_table
from spinney.models.methods import ModelMethods
from spinney.runtime.threads import effective_n_jobs
from spinney.tree.export._rules import CategoryCondition, Condition, NumericCondition, Rule
from spinney.tree.quinlan._c45 import C45Classifier

__all__ = ["C45Rules"]


@dataclass(frozen=True)
class _Test:
    """One condition: low < x <= high of a number, or one of the codes of a category."""

    feature: int
    low: float = -np.inf
    high: float = np.inf
    codes: frozenset[int] | None = None

    def holds(self, table: Table) -> NDArray[np.bool_]:
        matrix = table.matrix
        column = table.columns[self.feature] if matrix is None else matrix[:, self.feature]  # type: ignore[index]
        if self.codes is None:
            return np.asarray((column > self.low) & (column <= self.high))
        flags = np.zeros(max(self.codes, default=0) + 2, dtype=np.bool_)  # the last for the others
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
    """Rules from a C4.5 tree: fewer words than the tree, and often a little better.

    Each path of the unpruned tree becomes a rule. A rule loses conditions, one after another, as
    long as the share of errors to be expected of it does not rise. For each class a subset of its
    rules is chosen that describes it most briefly (exceptions included, by minimum description
    length). Classes are put in order, those whose rules are least often wrong first; the first rule
    that holds decides, and a default class where none does.

    Parameters
    ----------
    estimator : C45Classifier, default=None
        How the tree is grown; None means ``C45Classifier(confidence=None)``, without pruning.
    confidence : float, default=0.25
        As in `C45Classifier`, for the errors to be expected of a rule.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Columns of categories, as in `C45Classifier`.
    n_jobs : int, default=None
        Threads; they do not change the result.

    Attributes
    ----------
    rules_ : list of Rule
        In the order in which they are tried. ``n_samples`` and ``value`` are about the training
        rows for which a rule is the first that holds.
    default_class_ : object
        What is said where no rule holds.
    estimator_ : C45Classifier
        The tree.
    classes_, n_classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    A condition does not hold for a missing value. C4.5 searches for the subset of rules by
    simulated annealing; here it is a greedy search that adds and drops rules one at a time, which
    needs no random numbers.

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
        """Grow a tree and make rules of it.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows, with categories and missing values as they are.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

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
        weights = _check_sample_weight(sample_weight, np.empty((table.n_rows, 0)), dtype=np.float64)
        candidates = self._simplified(table, labels, weights)
        chosen = _in_order(
            [
                _briefest(
                    [rule for rule in candidates if rule.label == label],
                    table,
                    labels == label,
                    weights,
                    self._bits_of_tests(table),
                )
                for label in range(self.n_classes_)
            ],
            table,
            labels,
            weights,
            float(self.confidence),
        )
        self._settle(chosen, table, labels, weights)
        return self

    def _simplified(
        self, table: Table, labels: NDArray[np.uint32], weights: NDArray[np.float64]
    ) -> list[_Candidate]:
        """Drop conditions of the tree's paths, and what is then there twice."""
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
            if left:  # a rule without conditions is what the default is for
                out[_Candidate(left, path.label)] = None
        return list(out)

    def _bits_of_tests(self, table: Table) -> NDArray[np.float64]:
        """Bits that it takes to name a condition on each column."""
        bits = np.empty(table.n_features)
        for f, values in enumerate(self._schema.categories):
            if values is None:
                column = table.columns[f] if table.matrix is None else table.matrix[:, f]  # type: ignore[index]
                n_values = len(np.unique(column[~np.isnan(column)]))
                bits[f] = 1 + np.log2(max(n_values - 1, 1))  # which side, and the cut
            else:
                bits[f] = np.log2(max(len(values), 1))
        return bits + np.log2(table.n_features)

    def _settle(
        self,
        chosen: list[_Candidate],
        table: Table,
        labels: NDArray[np.uint32],
        weights: NDArray[np.float64],
    ) -> None:
        """Find out what each rule says of the rows for which it is the first that holds."""
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
            own = chosen[i].label if i < len(chosen) else default
            fractions[i] = row / row.sum() if row.sum() > 0 else np.arange(len(row)) == own
        # A rule answers with its own class, even where another one is as frequent.
        answers = [*(rule.label for rule in chosen), default]
        self._answers = np.array(answers)
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

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        return read_table(self, X, self._schema, accept_sparse=False)

    def apply(self, X: Any) -> NDArray[np.intp]:
        """Return the rule that decides for each row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Index into ``rules_``; their number where none holds.
        """
        table = self._read(X)
        return _first_rule(self._candidates, table)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class that the first rule names that holds.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes.
        """
        decided = self.apply(X)
        return np.asarray(self.classes_[self._answers[decided]])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the fractions of the classes where the same rule decided in training.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        decided = self.apply(X)
        return np.asarray(self._fractions[decided])

    def to_text(self) -> str:
        """Write the rules, one a line.

        Returns
        -------
        str
            With the default in the last line.
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
    """Return the paths to the leaves that training rows got to."""
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
            answers = [_Test(f, codes=frozenset(codes)) for codes in tree.codes_of_branches(node)]
        else:
            answers = [_Test(f, high=tree.threshold[node]), _Test(f, low=tree.threshold[node])]
        for child, answer in reversed(list(zip(children, answers, strict=True))):
            stack.append((child, _added(tests, answer)))
    return out


def _added(tests: tuple[_Test, ...], new: _Test) -> tuple[_Test, ...]:
    """Add a condition; of two upper or two lower ends of a number the narrower one stays."""
    if new.codes is not None:
        return (*tests, new)
    out = []
    for test in tests:
        same = test.feature == new.feature and test.codes is None
        if same and np.isfinite(test.high) and np.isfinite(new.high):
            continue  # ends only move inwards on the way down
        if same and np.isfinite(test.low) and np.isfinite(new.low):
            continue
        out.append(test)
    return (*out, new)


def _log2_choose(n: Any, k: Any) -> Any:
    return (gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) / np.log(2)


def _briefest(
    rules: list[_Candidate],
    table: Table,
    is_class: NDArray[np.bool_],
    weights: NDArray[np.float64],
    bits_of_tests: NDArray[np.float64],
) -> list[_Candidate]:
    """Choose the rules of one class that, with their exceptions, take the fewest bits."""
    if not rules:
        return []
    covered_rows = [np.flatnonzero(rule.covers(table)) for rule in rules]
    starts = np.cumsum([0, *map(len, covered_rows)])
    shape = (len(rules), table.n_rows)
    cover = sp.csr_array((np.ones(starts[-1]), np.concatenate(covered_rows), starts), shape=shape)
    # Half the bits of the conditions, as C4.5 does: rules overlap, and their order is free.
    cost = np.array(
        [
            0.5
            * (
                sum(bits_of_tests[test.feature] for test in rule.tests)
                - gammaln(len(rule.tests) + 1) / np.log(2)
            )
            for rule in rules
        ]
    )
    used = np.zeros(len(rules), dtype=np.bool_)
    times = np.zeros(len(weights))  # that each row is covered
    all_weight, all_own = weights.sum(), weights[is_class].sum()

    def bits(covered: Any, own: Any, theory: Any) -> Any:
        """Of the exceptions: rows covered wrongly, and rows of the class not covered."""
        wrong, missed = covered - own, np.maximum(all_own - own, 0.0)
        rest = np.maximum(all_weight - covered, missed)
        return theory + _log2_choose(covered, wrong) + _log2_choose(rest, missed)

    best = float(bits(0.0, 0.0, 0.0))
    while True:
        # What each change would cover: rows that nothing covers yet, or that nothing else covers.
        flip = np.where(used, -1.0, 1.0)
        fresh, alone = weights * (times == 0), weights * (times == 1)
        gained = np.where(used, cover @ alone, cover @ fresh) * flip
        own = np.where(used, cover @ (alone * is_class), cover @ (fresh * is_class)) * flip
        covered_now, own_now = weights[times > 0].sum(), weights[is_class & (times > 0)].sum()
        told = bits(
            np.clip(covered_now + gained, 0.0, all_weight),
            np.clip(own_now + own, 0.0, all_own),
            cost[used].sum() + flip * cost,
        )
        change = int(np.argmin(told))
        if not told[change] < best - 1e-9:
            return [rule for rule, flag in zip(rules, used, strict=True) if flag]
        best = float(told[change])
        used[change] = not used[change]
        times += flip[change] * cover[[change]].toarray().ravel()


def _in_order(
    by_class: list[list[_Candidate]],
    table: Table,
    labels: NDArray[np.uint32],
    weights: NDArray[np.float64],
    confidence: float,
) -> list[_Candidate]:
    """Put classes in order, those whose rules are least often wrong first."""
    left = weights.copy()
    waiting = {label: rules for label, rules in enumerate(by_class) if rules}
    covers = {
        label: np.any([rule.covers(table) for rule in rules], axis=0)
        for label, rules in waiting.items()
    }
    out: list[_Candidate] = []
    while waiting:
        wrong = {c: float(left[covers[c] & (labels != c)].sum()) for c in waiting}
        label = min(waiting, key=lambda c: (wrong[c], c))

        def expected(rule: _Candidate) -> float:
            held = rule.covers(table)
            n = float(weights[held].sum())
            errors = float(weights[held & (labels != rule.label)].sum())
            return (errors + _core.extra_errors(n, errors, confidence)) / n if n > 0 else 1.0

        out += sorted(waiting.pop(label), key=expected)
        left[covers[label]] = 0.0
    return out


def _first_rule(rules: list[_Candidate], table: Table) -> NDArray[np.intp]:
    first = np.full(table.n_rows, len(rules), dtype=np.intp)
    for i in range(len(rules) - 1, -1, -1):
        first[rules[i].covers(table)] = i
    return first


def _conditions(rule: _Candidate, schema: Schema, names: list[str]) -> tuple[Condition, ...]:
    """Return the conditions as they are shown, both ends of a number in one."""
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
                f,
                names[f],
                tuple(value for code, value in enumerate(values) if code in codes),
                tuple(value for code, value in enumerate(values) if code not in codes),
                missing=False,
            )
        )
    return tuple(out)
