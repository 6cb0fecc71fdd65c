"""Reference implementation of local regression with dense solves."""

import numpy as np
from scipy.spatial.distance import cdist

FORMULAS = {
    "uniform": lambda u: (u <= 1) * 1.0,
    "triangular": lambda u: np.maximum(1 - u, 0),
    "epanechnikov": lambda u: np.maximum(1 - u**2, 0),
    "biweight": lambda u: np.maximum(1 - u**2, 0) ** 2,
    "triweight": lambda u: np.maximum(1 - u**2, 0) ** 3,
    "tricube": lambda u: np.maximum(1 - u**3, 0) ** 3,
    "gaussian": lambda u: np.exp(-(u**2) / 2),
    "cosine": lambda u: np.where(u < 1, np.cos(np.pi / 2 * u), 0.0),
    "logistic": lambda u: 4 / (np.exp(u) + 2 + np.exp(-u)),
}


def smooth_decay(u):
    return np.exp(-u)


def design_columns(differences, degree):
    """Return the columns of the design: one, features and products."""
    n, d = differences.shape
    columns = [np.ones(n)]
    if degree >= 1:
        columns += [differences[:, a] for a in range(d)]
    if degree == 2:
        columns += [differences[:, a] * differences[:, b] for a in range(d) for b in range(a + 1)]
    return np.column_stack(columns)


def weights_at(point, X, model, sample_weight):
    """Return the kernel weights of all rows, from a sort of all distances."""
    name = {"manhattan": "cityblock"}.get(model.metric, model.metric)
    distances = cdist([point], X, name)[0]
    kernel = FORMULAS.get(model.kernel, model.kernel)
    if model.bandwidth_ is not None:
        return kernel(distances / model.bandwidth_) * sample_weight
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(sample_weight[order]) >= model.n_neighbors_
    last = order[reached.argmax() if reached.any() else -1]
    weights = kernel(distances / (distances[last] * 1.001))
    return weights * (distances <= distances[last]) * sample_weight


def reference(X, y, points, model, sample_weight=None):
    """Return intercepts, slopes and smoother rows from a dense solve at each point."""
    sample_weight = np.ones(len(X)) if sample_weight is None else sample_weight
    values, slopes, smoother = [], [], []
    for point in points:
        weights = weights_at(point, X, model, sample_weight)
        design = design_columns(X - point, model.degree)
        roots = np.sqrt(weights)[:, None]
        penalty = np.sqrt(model.alpha) * np.eye(design.shape[1])
        penalty[0, 0] = 0
        left = np.vstack([roots * design, penalty])
        right = np.vstack([roots * np.eye(len(X)), np.zeros((len(penalty), len(X)))])
        solved = np.linalg.lstsq(left, right, rcond=None)[0]
        values.append(solved[0] @ y)
        slopes.append(solved[1 : 1 + X.shape[1]] @ y)
        smoother.append(solved[0])
    return np.array(values), np.array(slopes), np.array(smoother)


def wavy_rows(n, d, seed=0, noise=0.1):
    """Return rows, noisy targets of a smooth function, and points to predict."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = np.sin(3 * X[:, 0]) + X.sum(axis=1) ** 2 + rng.normal(scale=noise, size=n)
    return X, y, rng.uniform(-1.2, 1.2, (25, d))
