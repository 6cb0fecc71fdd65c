"""Search for nearest neighbours."""

from __future__ import annotations

from typing import Any

from sklearn import neighbors

from spinney.neighbors.search import KNeighborSearch, RadiusNeighborSearch, extend_constraints

__all__ = ["NearestNeighbors"]


class NearestNeighbors(  # type: ignore[misc]
    KNeighborSearch, RadiusNeighborSearch, neighbors.NearestNeighbors
):
    """Find the training rows nearest to a query, and their distances.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours.
    radius : float, default=1.0
        Largest distance of a neighbour.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute", "hnsw"}, default="auto"
        The index. "auto" selects the lowest expected cost, which depends on the numbers of rows
        and columns, the metric and k (`spinney.neighbors.choose_algorithm`). "hnsw" is an
        approximate index (`HNSW`), which may miss neighbours.
    leaf_size : int, default=30
        Number of rows in a leaf of a tree. It affects the speed, not the result.
    metric : str, callable or DistanceMetric, default="minkowski"
        Any metric of scikit-learn. "mahalanobis" and "seuclidean" estimate the parameters that
        `metric_params` lacks from the training rows. "precomputed": X contains distances. "edit"
        and "hamming": X may contain strings. "gower": X may contain categories and missing values.
        "kernel": the distance in the feature space of ``metric_params["kernel"]``, a name or a
        function of two rows.
    p : float, default=2
        Power of ``metric="minkowski"``: 1 is "manhattan", 2 is "euclidean".
    metric_params : dict or None, default=None
        Parameters of the metric. For "gower": ``weights``, a number for each column; ``scale``,
        which divides numeric differences by the "range" of the column (default) or by its
        standard deviation ("std"); ``categorical_features``: "from_dtype" (default), or a mask,
        indices or names of the categorical columns.
    n_jobs : int or None, default=None
        Number of threads; None means the value of `spinney.set_num_threads`. The result does not
        depend on it.

    Attributes
    ----------
    effective_metric_ : str or callable
        The metric in use, for instance "euclidean" for "minkowski" with p = 2.
    effective_metric_params_ : dict
        Its parameters.
    n_features_in_ : int
        Number of columns of X in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all are strings.
    n_samples_fit_ : int
        Number of training rows.

    Examples
    --------
    >>> from spinney.neighbors import NearestNeighbors
    >>> search = NearestNeighbors(n_neighbors=2).fit([[0.0], [1.0], [3.0]])
    >>> distances, rows = search.kneighbors([[2.0]])
    >>> distances.tolist(), rows.tolist()
    ([[1.0, 1.0]], [[1, 2]])
    """

    _parameter_constraints: dict[str, Any] = extend_constraints(
        neighbors.NearestNeighbors._parameter_constraints
    )
