"""Plots of models and their predictions.

Every function draws on matplotlib Axes (`ax`; None makes a figure) and returns them. It does not
show the figure and changes no settings. matplotlib is imported only when a function draws; install
it with ``pip install 'spinney[plot]'``.
"""

from spinney.plot._accumulated import accumulated_local_effects
from spinney.plot._boundary import decision_boundary
from spinney.plot._calibration import calibration
from spinney.plot._comparison import comparison
from spinney.plot._confusion import confusion
from spinney.plot._curves import learning_curve, validation_curve
from spinney.plot._dependence import partial_dependence
from spinney.plot._importances import importances
from spinney.plot._influence import influence
from spinney.plot._margins import margins
from spinney.plot._rates import precision_recall, roc
from spinney.plot._residuals import residuals
from spinney.plot._shap import shap_dependence, shap_summary, shap_waterfall
from spinney.plot._tree import tree

__all__ = [
    "accumulated_local_effects",
    "calibration",
    "comparison",
    "confusion",
    "decision_boundary",
    "importances",
    "influence",
    "learning_curve",
    "margins",
    "partial_dependence",
    "precision_recall",
    "residuals",
    "roc",
    "shap_dependence",
    "shap_summary",
    "shap_waterfall",
    "tree",
    "validation_curve",
]
