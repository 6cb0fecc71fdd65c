"""Influence: rows of great leverage and great residuals move a linear model."""

from sklearn.datasets import load_diabetes

from spinney import plot
from spinney.linear_model import LinearRegression

X, y = load_diabetes(return_X_y=True)
model = LinearRegression().fit(X, y)

plot.influence(model, X, y)
