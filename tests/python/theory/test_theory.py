"""Learning theory: every number against a count, a simulation, a formula or a fit."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.datasets import make_moons

from spinney import theory
from spinney.ensemble import AdaBoostClassifier
from spinney.linear_model import HalfspaceClassifier, Perceptron
from spinney.neighbors import KNeighborsClassifier
from spinney.tree import DecisionTreeClassifier


def count_labellings(X, fit_intercept):
    """Count the labellings that halfspaces realize, by trying all."""
    separable = 0
    for labels in itertools.product([0, 1], repeat=len(X)):
        if len(set(labels)) == 1 and fit_intercept:
            separable += 1
            continue
        # Equal labels are one class only: add a mirrored row of the other class.
        rows, row_labels = np.vstack([X, -X[:1]]), [*labels, 1 - labels[0]]
        if fit_intercept:
            rows, row_labels = X, labels
        model = HalfspaceClassifier(fit_intercept=fit_intercept).fit(rows, row_labels)
        separable += model.separable_
    return separable


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(1, 2), (3, 2), (4, 2), (5, 2), (4, 3), (5, 3), (4, 1)])
def test_growth_function_equals_the_count(n, d, fit_intercept):
    X = np.random.default_rng(n + d).normal(size=(n, d))
    if n == 1 and fit_intercept:
        assert theory.growth_of_halfspaces(1, d) == 2
        return
    growth = theory.growth_of_halfspaces(n, d, fit_intercept=fit_intercept)
    assert count_labellings(X, fit_intercept) == growth
    dimension = theory.vc_dimension_of_halfspaces(d, fit_intercept=fit_intercept)
    assert (growth == 2**n) == (n <= dimension)
    assert growth <= theory.sauer_bound(n, dimension)


@given(st.integers(1, 40), st.integers(1, 10))
def test_growth_is_below_the_sauer_bound(n, d):
    dimension = theory.vc_dimension_of_halfspaces(d)
    assert theory.growth_of_halfspaces(n, d) <= theory.sauer_bound(n, dimension) <= 2**n
    if n >= dimension:
        assert theory.sauer_bound(n, dimension) <= (math.e * n / dimension) ** dimension * (
            1 + 1e-9
        )


@pytest.mark.parametrize("n_hypotheses", [1, 20])
def test_hoeffding_bound_holds(n_hypotheses):
    rng = np.random.default_rng(0)
    n, delta = 200, 0.1
    deviation = theory.hoeffding_deviation(n, delta, n_hypotheses)
    means = rng.binomial(n, 0.5, (5000, n_hypotheses)) / n
    failed = (np.abs(means - 0.5).max(axis=1) > deviation).mean()
    assert failed <= delta
    # For one hypothesis and a fair coin, the bound is rather tight.
    assert failed > delta / 20


@settings(max_examples=50)
@given(st.floats(0.01, 0.5), st.floats(0.001, 0.5), st.integers(1, 10**6))
def test_sample_sizes_are_minimal(epsilon, delta, n_hypotheses):
    n = theory.hoeffding_sample_size(epsilon, delta, n_hypotheses)
    assert theory.hoeffding_deviation(n, delta, n_hypotheses) <= epsilon * (1 + 1e-12)
    if n > 1:
        assert theory.hoeffding_deviation(n - 1, delta, n_hypotheses) > epsilon * (1 - 1e-12)
    n = theory.hoeffding_sample_size(epsilon, delta, n_hypotheses, realizable=True)
    assert n_hypotheses * math.exp(-epsilon * n) <= delta * (1 + 1e-9)
    if n > 1:
        assert n_hypotheses * math.exp(-epsilon * (n - 1)) > delta * (1 - 1e-9)


@pytest.mark.parametrize("dimension", [1, 3, 20])
@pytest.mark.parametrize("epsilon", [0.3, 0.05])
def test_vc_sample_sizes_match_the_deviation(dimension, epsilon):
    n = theory.vc_sample_size(epsilon, 0.05, dimension, realizable=False)
    assert theory.vc_deviation(n, 0.05, dimension) <= epsilon
    assert theory.vc_deviation(n - 1, 0.05, dimension) > epsilon
    assert theory.vc_sample_size(epsilon, 0.05, dimension) < n
    # Twice the dimension needs about twice the rows.
    n_doubled = theory.vc_sample_size(epsilon, 0.05, 2 * dimension, realizable=False)
    assert 1.2 * n < n_doubled < 2.1 * n


def test_vc_deviation_by_hand():
    # P(sup > ε) <= 4 S(2n) exp(−n ε²/8), with S(2n) = 2n + 1 for dimension 1.
    for n, delta in ((1000, 0.05), (50, 0.5)):
        epsilon = theory.vc_deviation(n, delta, 1)
        assert 4 * (2 * n + 1) * math.exp(-n * epsilon**2 / 8) == pytest.approx(delta)


def test_vc_bound_holds_for_halfspaces():
    # Thresholds on a line with intercept have dimension 2; the supremum can be computed.
    rng = np.random.default_rng(0)
    n, worst = 2000, []
    for _ in range(50):
        x = np.sort(rng.random(n))
        # Labels are fair coins, so that every halfspace has true error one half.
        signs = rng.choice([-1.0, 1.0], n)
        sums = np.r_[0, np.cumsum(signs[np.argsort(x)])]
        errors = 0.5 + (2 * sums - sums[-1]) / (2 * n)
        worst.append(np.abs(errors - 0.5).max())
    dimension = theory.vc_dimension_of_halfspaces(1)
    assert np.quantile(worst, 0.95) <= theory.vc_deviation(n, 0.05, dimension)


def test_realizable_sample_size_suffices():
    rng = np.random.default_rng(0)
    n = theory.vc_sample_size(0.2, 0.1, theory.vc_dimension_of_halfspaces(2))
    X_new = rng.normal(size=(20_000, 2))
    failures = 0
    for _ in range(10):
        X = rng.normal(size=(n, 2))
        model = HalfspaceClassifier().fit(X, X[:, 0] + X[:, 1] > 0.3)
        failures += np.mean(model.predict(X_new) != (X_new.sum(axis=1) > 0.3)) > 0.2
    assert failures <= 1


def test_adaboost_bound_holds():
    X, y = make_moons(300, noise=0.3, random_state=0)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=60).fit(X, y)
    for t in (1, 5, 20, len(model.estimator_errors_)):
        bound = theory.adaboost_bound(model.estimator_errors_[:t])
        edges = 0.5 - np.asarray(model.estimator_errors_[:t])
        assert bound == pytest.approx(theory.adaboost_bound(edges, from_edges=True))
        assert bound <= math.exp(-2 * np.sum(edges**2))
        stage = list(model.staged_predict(X))[t - 1]
        assert np.mean(stage != y) <= bound
    assert theory.adaboost_bound([]) == 1
    assert theory.adaboost_bound([0.3, 0.0]) == 0
    assert theory.adaboost_bound([0.3] * 7) == pytest.approx((1 - 4 * 0.2**2) ** 3.5)


def test_perceptron_bound_holds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] > 0
    X[:, 0] += np.where(y, 0.5, -0.5)
    bound_of_coef = theory.perceptron_bound(X, y, [1.0, 0.0, 0.0])
    margin, radius = np.abs(X[:, 0]).min(), np.sqrt((X**2).sum(axis=1) + 1).max()
    assert bound_of_coef == pytest.approx((radius / margin) ** 2)
    bound_of_data = theory.perceptron_bound(X, y)
    for seed in range(5):
        n_mistakes = Perceptron(random_state=seed, tol=None).fit(X, y).n_mistakes_[0]
        assert n_mistakes <= min(bound_of_coef, bound_of_data)
    assert theory.perceptron_bound(X, ~y, [1.0, 0.0, 0.0]) == math.inf
    assert theory.perceptron_bound([[0.0], [1.0], [2.0]], [0, 1, 0]) == math.inf
    assert theory.perceptron_bound(X, y, [0.0, 0.0, 0.0]) == math.inf


# ------------------------------------------------------------------------ known distributions

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@settings(max_examples=100)
@given(probabilities, st.integers(2, 4), st.integers(0, 10**6))
def test_errors_of_finite_distributions(proportions, n_classes, seed):
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.full(n_classes, 0.5), len(proportions))
    weights = np.array(proportions) + 0.01
    mass = weights / weights.sum()
    brute_force = min(
        sum(mass[i] * (1 - eta[i, c]) for i, c in enumerate(rule))
        for rule in itertools.product(range(n_classes), repeat=min(len(proportions), 4))
    ) if len(proportions) <= 4 else None  # fmt: skip
    error = theory.bayes_error(eta, weights)
    if brute_force is not None:
        assert error == pytest.approx(brute_force, abs=1e-12)
    chosen = theory.bayes_classifier(eta)
    assert error == pytest.approx(
        sum(
            probability * (1 - posterior[c])
            for probability, posterior, c in zip(mass, eta, chosen, strict=True)
        )
    )
    neighbor = theory.nearest_neighbor_error(eta, weights)
    assert error - 1e-12 <= neighbor <= theory.cover_hart_bound(error, n_classes) + 1e-12
    assert neighbor <= 2 * error + 1e-12
    estimated = rng.random(eta.shape)
    excess = theory.plug_in_excess(estimated, eta, weights)
    assert -1e-15 <= excess <= theory.plug_in_bound(estimated, eta, weights) + 1e-12
    error_of_estimate = sum(
        probability * (1 - posterior[c])
        for probability, posterior, c in zip(mass, eta, estimated.argmax(axis=1), strict=True)
    )
    assert excess == pytest.approx(error_of_estimate - error, abs=1e-12)


def test_two_classes_may_be_one_column():
    eta, estimated = np.array([0.1, 0.7, 0.4]), np.array([0.2, 0.4, 0.6])
    two_columns = np.column_stack([1 - eta, eta])
    assert theory.bayes_error(eta) == theory.bayes_error(two_columns) == pytest.approx(0.8 / 3)
    assert theory.plug_in_bound(estimated, eta) == pytest.approx(2 * np.abs(estimated - eta).mean())
    differs = (estimated > 0.5) != (eta > 0.5)
    assert theory.plug_in_excess(estimated, eta) == pytest.approx(
        np.mean(differs * np.abs(2 * eta - 1))
    )


def test_cover_hart_bound_is_tight():
    for n_classes in (2, 3, 5):
        for error in (0.0, 0.1, 1 - 1 / n_classes):
            eta = np.full(n_classes, error / (n_classes - 1))
            eta[0] = 1 - error
            assert theory.nearest_neighbor_error([eta]) == pytest.approx(
                theory.cover_hart_bound(error, n_classes)
            )


def test_nearest_neighbour_error_converges():
    # η(x) = x on [0, 1]: R* = 1/4, and the error of the nearest neighbour is E 2η(1 − η) = 1/3.
    rng = np.random.default_rng(0)
    points = (np.arange(10_000) + 0.5) / 10_000
    assert theory.bayes_error(points) == pytest.approx(0.25, abs=1e-8)
    assert theory.nearest_neighbor_error(points) == pytest.approx(1 / 3, abs=1e-8)
    X, X_new = rng.random((20_000, 1)), rng.random((40_000, 1))
    y, y_new = rng.random(20_000) < X[:, 0], rng.random(40_000) < X_new[:, 0]
    for n in (100, 20_000):
        error = 1 - KNeighborsClassifier(1).fit(X[:n], y[:n]).score(X_new, y_new)
        assert error <= theory.nearest_neighbor_bound(0.25, 1.0, 1, n)
    assert error == pytest.approx(1 / 3, abs=0.012)


def test_rate_of_the_nearest_neighbour_bound():
    few_rows, many_rows = (theory.nearest_neighbor_bound(0, 2.0, 3, n) for n in (16, 256))
    assert few_rows == pytest.approx(4 * 2 * 3**0.5 * 16 ** (-1 / 4))
    assert many_rows == pytest.approx(few_rows / 2)  # n^(-1/(d + 1)) with d = 3


# -------------------------------------------------------------------------- Gaussian classes


def test_bayes_error_of_two_gaussians():
    for d, distance in itertools.product((1, 2), (0.5, 2.0, 6.0)):
        means = np.zeros((2, d))
        means[1, 0] = distance
        error, spread = theory.GaussianClasses(means).bayes_error()
        assert error == pytest.approx(norm.cdf(-distance / 2), rel=1e-6, abs=1e-12)
        assert spread == 0


def test_bayes_error_with_priors_and_variances():
    # The ends of the interval are known for N(0, 1) against N(0, 4).
    interval_end = math.sqrt(8 / 3 * math.log(2))
    correct = norm.cdf(interval_end) - norm.cdf(-interval_end) + 2 * norm.cdf(-interval_end / 2)
    error, _ = theory.GaussianClasses([0.0, 0.0], [1.0, 4.0]).bayes_error()
    assert error == pytest.approx(1 - correct / 2, abs=1e-12)
    assert theory.GaussianClasses([0.0, 0.0], weights=[3, 1]).bayes_error()[0] == pytest.approx(
        0.25
    )
    assert theory.GaussianClasses([0.0, 5.0], classes=["a", "a"]).bayes_error()[0] == 0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_bayes_error_by_sampling(d):
    rng = np.random.default_rng(d)
    factors = rng.normal(size=(4, d, d))
    covariances = factors @ np.swapaxes(factors, 1, 2) + 0.3 * np.eye(d)
    mixture = theory.GaussianClasses(
        rng.normal(size=(4, d)) * 2, covariances, [1, 2, 3, 4], ["a", "b", "a", "c"]
    )
    sampled, spread = mixture.bayes_error(200_000, random_state=0)
    assert 0 < spread < 0.002
    if d < 3:
        exact, exact_spread = mixture.bayes_error()
        assert exact_spread == 0
        assert abs(exact - sampled) < 4 * spread
    X, y = mixture.sample(100_000, random_state=1)
    assert np.mean(mixture.predict(X) != y) == pytest.approx(sampled, abs=0.006)
    posteriors = mixture.posteriors(X)
    assert theory.bayes_error(posteriors) == pytest.approx(sampled, abs=0.004)
    np.testing.assert_allclose(posteriors.mean(axis=0), [0.4, 0.2, 0.4], atol=0.01)
    np.testing.assert_allclose(
        mixture.classes_[theory.bayes_classifier(posteriors)] == mixture.predict(X), True
    )


# -------------------------------------------------------------------------------- impurities


def test_impurities_of_the_lecture_example():
    proportions = [4 / 7, 2 / 7, 1 / 7]
    assert theory.gini(proportions) == pytest.approx(4 / 7)
    assert theory.entropy(proportions) == pytest.approx(1.3788, abs=1e-4)
    assert theory.entropy(proportions, base=math.e) == pytest.approx(1.3788 * math.log(2), abs=1e-4)
    assert theory.entropy([1.0, 0.0]) == 0
    y = np.repeat([0, 1, 2], [4, 2, 1])
    for criterion, impurity in (("gini", theory.gini), ("entropy", theory.entropy)):
        tree = DecisionTreeClassifier(criterion=criterion, max_depth=1).fit(
            np.arange(7)[:, None], y
        )
        assert tree.tree_.impurity[0] == pytest.approx(impurity(proportions))


INVALID = [
    (theory.vc_dimension_of_halfspaces, (0,), "n_features"),
    (theory.growth_of_halfspaces, (2.5, 2), "n_samples"),
    (theory.sauer_bound, (5, -1), "vc_dimension"),
    (theory.hoeffding_deviation, (10, 1.0), "delta"),
    (theory.hoeffding_deviation, (True, 0.1), "n_samples"),
    (theory.hoeffding_sample_size, (0.0, 0.1), "epsilon"),
    (theory.vc_sample_size, (0.1, math.nan, 3), "delta"),
    (theory.adaboost_bound, ([0.1, 1.2],), "errors"),
    (theory.adaboost_bound, (0.3,), "errors"),
    (theory.perceptron_bound, ([[1.0], [2.0]], [1, 1]), "two classes"),
    (theory.perceptron_bound, ([[1.0], [2.0]], [0, 1], [1.0, 2.0]), "coef"),
    (theory.bayes_error, ([0.2, 1.3],), "posteriors"),
    (theory.bayes_error, ([[0.2, 0.3]],), "posteriors"),
    (theory.bayes_error, ([math.nan],), "posteriors"),
    (theory.bayes_error, ([0.2, 0.3], [1.0]), "weights"),
    (theory.bayes_error, ([0.2, 0.3], [0.0, 0.0]), "weights"),
    (theory.cover_hart_bound, (0.6,), "bayes_error"),
    (theory.nearest_neighbor_bound, (0.1, -1.0, 1, 10), "lipschitz"),
    (theory.plug_in_bound, ([0.2], [0.1, 0.3]), "estimated"),
    (theory.plug_in_excess, ([math.inf], [0.1]), "estimated"),
    (theory.gini, ([0.5, 0.4],), "proportions"),
    (theory.entropy, ([0.5, 0.5], 1.0), "base"),
    (theory.GaussianClasses, ([],), "means"),
    (theory.GaussianClasses, ([0.0, 1.0], [1.0, -1.0]), "covariances"),
    (theory.GaussianClasses, ([0.0, 1.0], [1.0]), "covariances"),
    (theory.GaussianClasses, ([0.0, 1.0], 1.0, [1.0]), "weights"),
    (theory.GaussianClasses, ([0.0, 1.0], 1.0, None, ["a"]), "classes"),
    (theory.GaussianClasses([0.0, 1.0]).predict, ([0.0],), "X"),
]


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    INVALID,
    ids=lambda value: getattr(value, "__name__", str(value))[:40],
)
def test_invalid_arguments_raise(function, arguments, name):
    with pytest.raises(ValueError, match=name):
        function(*arguments)
