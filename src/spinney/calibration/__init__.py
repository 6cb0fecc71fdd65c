"""Conformal intervals, prediction sets and calibrated probabilities."""

from spinney.calibration._calibrated_classifier import CalibratedClassifier
from spinney.calibration._conformal_classifier import ConformalClassifier
from spinney.calibration._conformal_regressor import ConformalRegressor

__all__ = ["CalibratedClassifier", "ConformalClassifier", "ConformalRegressor"]
