"""Fitted models as values: trees, forests, and the meaning of their scores."""
