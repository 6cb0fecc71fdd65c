"""Accumulated local effects: how predictions change with a column, where the rows are."""

from sklearn.datasets import load_diabetes

from spinney import plot
from spinney.ensemble import GradientBoostingRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0).fit(X, y)

plot.accumulated_local_effects(model, X, "bmi")
