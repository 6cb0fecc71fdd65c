"""Individual curves, centred: rows that part act differently, so other columns have a say."""

from sklearn.datasets import load_diabetes

from spinney import plot
from spinney.ensemble import GradientBoostingRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GradientBoostingRegressor(random_state=0).fit(X, y)

plot.partial_dependence(model, X, "s5", individual=60, centred=True)
