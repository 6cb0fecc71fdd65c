"""Bootstrap, and decomposition of the error into bias and variance."""

from spinney.model_selection._bias_variance import BiasVariance, bias_variance
from spinney.model_selection._bootstrap import Bootstrap, bootstrap

__all__ = ["BiasVariance", "Bootstrap", "bias_variance", "bootstrap"]
