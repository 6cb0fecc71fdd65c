"""Conformal prediction: intervals and prediction sets of fitted models."""
