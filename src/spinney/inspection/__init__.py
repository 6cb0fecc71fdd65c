"""Model explanations: importances, dependence, Shapley values, counterfactuals."""

from spinney.inspection._drop_column import drop_column_importance
from spinney.inspection._influence import Influence, influence
from spinney.inspection._interactions import Interactions, interaction_strengths
from spinney.inspection._neighbors import LeafNeighbors, leaf_neighbors
from spinney.inspection.accumulated import AccumulatedEffects, accumulated_local_effects
from spinney.inspection.counterfactuals._counterfactual import Counterfactual, counterfactual
from spinney.inspection.dependence import Dependence, partial_dependence
from spinney.inspection.importances import Importances
from spinney.inspection.impurity import impurity_importance
from spinney.inspection.permutation import permutation_importance
from spinney.inspection.shap._explanation import Explanation
from spinney.inspection.shap._shap_values import explain, shap_interaction_values, shap_values

__all__ = [
    "AccumulatedEffects",
    "Counterfactual",
    "Dependence",
    "Explanation",
    "Importances",
    "Influence",
    "Interactions",
    "LeafNeighbors",
    "accumulated_local_effects",
    "counterfactual",
    "drop_column_importance",
    "explain",
    "impurity_importance",
    "influence",
    "interaction_strengths",
    "leaf_neighbors",
    "partial_dependence",
    "permutation_importance",
    "shap_interaction_values",
    "shap_values",
]
