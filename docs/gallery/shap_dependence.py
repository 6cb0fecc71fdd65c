"""What the body mass index adds to predictions, coloured by a blood measurement."""

from sklearn.datasets import load_diabetes

from spinney import plot
from spinney.ensemble import RandomForestRegressor
from spinney.inspection import explain

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
forest = RandomForestRegressor(100, random_state=0).fit(X, y)

plot.shap_dependence(explain(forest, X), "bmi", colour_by="s5")
