"""Residuals: what is left of the targets, against the prediction."""

from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_predict

from spinney import plot
from spinney.linear_model import LinearRegression

X, y = load_diabetes(return_X_y=True)
predicted = cross_val_predict(LinearRegression(), X, y, cv=10)

plot.residuals(predicted, y=y)
