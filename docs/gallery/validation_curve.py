"""Validation curve: small leaves learn by heart, large ones learn little."""

from sklearn.datasets import load_diabetes

from spinney import plot
from spinney.tree import DecisionTreeRegressor

X, y = load_diabetes(return_X_y=True)
sizes = [1, 2, 4, 8, 16, 32, 64, 128]

plot.validation_curve(DecisionTreeRegressor(random_state=0), X, y, "min_samples_leaf", sizes)
