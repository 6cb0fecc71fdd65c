"""Gaussian mixtures, and classifiers by Bayes' rule."""

from spinney.mixture._gaussian_mixture import GaussianMixture
from spinney.mixture._mixture_classifier import MixtureClassifier
from spinney.mixture._plug_in import PlugInClassifier

__all__ = ["GaussianMixture", "MixtureClassifier", "PlugInClassifier"]
