"""Mixtures of Gaussians, and classifiers that plug densities or log-odds into Bayes' rule."""

from spinney.mixture._gaussian_mixture import GaussianMixture

__all__ = ["GaussianMixture"]
