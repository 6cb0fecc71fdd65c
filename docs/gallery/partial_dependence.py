"""Partial dependence: how the mean prediction goes with a column, and that of fifty single rows."""

from sklearn.datasets import load_diabetes

from spinney import plot
from spinney.ensemble import GradientBoostingRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0).fit(X, y)

plot.partial_dependence(model, X, "bmi", individual=True)
