"""How one prediction comes about: from the base value to the answer, column by column."""

from sklearn.datasets import load_diabetes

from spinney import plot
from spinney.ensemble import RandomForestRegressor
from spinney.inspection import explain

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
forest = RandomForestRegressor(100, random_state=0).fit(X, y)

plot.shap_waterfall(explain(forest, X.iloc[:1]))
