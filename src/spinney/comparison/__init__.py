"""Cross-validate every family of models on one table and rank them."""
