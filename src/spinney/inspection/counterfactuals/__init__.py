"""Counterfactuals of tree ensembles by branch and bound."""
