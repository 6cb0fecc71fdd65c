"""What models lean on, how predictions depend on columns, and which rows stand behind them."""

from spinney.inspection._accumulated import AccumulatedEffects, accumulated_local_effects
from spinney.inspection._counterfactual import Counterfactual, counterfactual
from spinney.inspection._dependence import Dependence, partial_dependence
from spinney.inspection._drop_column import drop_column_importance
from spinney.inspection._importances import Importances
from spinney.inspection._impurity import impurity_importance
from spinney.inspection._influence import Influence, influence
from spinney.inspection._interactions import Interactions, interaction_strengths
from spinney.inspection._neighbors import LeafNeighbors, leaf_neighbors
from spinney.inspection._permutation import permutation_importance

__all__ = [
    "AccumulatedEffects",
    "Counterfactual",
    "Dependence",
    "Importances",
    "Influence",
    "Interactions",
    "LeafNeighbors",
    "accumulated_local_effects",
    "counterfactual",
    "drop_column_importance",
    "impurity_importance",
    "influence",
    "interaction_strengths",
    "leaf_neighbors",
    "partial_dependence",
    "permutation_importance",
]
