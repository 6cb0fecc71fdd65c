"""Why a model says what it says."""

from spinney.inspection._explanation import Explanation
from spinney.inspection._shap import explain, shap_interaction_values, shap_values

__all__ = ["Explanation", "explain", "shap_interaction_values", "shap_values"]
