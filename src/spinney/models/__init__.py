"""Fitted models as values: trees, forests, and what the scores mean."""
