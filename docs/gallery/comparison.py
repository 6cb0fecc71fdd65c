"""Comparison: the learners on one table, best on top."""

import spinney
from spinney.datasets import load_spam

X, y = load_spam(return_X_y=True)
models = ["baseline", "decision_tree", "logistic_regression", "k_neighbors", "random_forest"]
result = spinney.compare(X, y, models=models, cv=5)

spinney.plot.comparison(result)
