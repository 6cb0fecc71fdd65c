"""Learning theory: error rates of known distributions, bounds and sample sizes."""

from spinney.theory._bounds_of_fits import adaboost_bound, perceptron_bound
from spinney.theory._error_estimates import (
    bayes_classifier,
    bayes_error,
    cover_hart_bound,
    entropy,
    gini,
    nearest_neighbor_bound,
    nearest_neighbor_error,
    plug_in_bound,
    plug_in_excess,
)
from spinney.theory._gaussian_classes import GaussianClasses
from spinney.theory._sample_size import (
    growth_of_halfspaces,
    hoeffding_deviation,
    hoeffding_sample_size,
    sauer_bound,
    vc_deviation,
    vc_dimension_of_halfspaces,
    vc_sample_size,
)

__all__ = [
    "GaussianClasses",
    "adaboost_bound",
    "bayes_classifier",
    "bayes_error",
    "cover_hart_bound",
    "entropy",
    "gini",
    "growth_of_halfspaces",
    "hoeffding_deviation",
    "hoeffding_sample_size",
    "nearest_neighbor_bound",
    "nearest_neighbor_error",
    "perceptron_bound",
    "plug_in_bound",
    "plug_in_excess",
    "sauer_bound",
    "vc_deviation",
    "vc_dimension_of_halfspaces",
    "vc_sample_size",
]
