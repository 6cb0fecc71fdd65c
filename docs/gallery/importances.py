"""Importances: how much worse a model is without a column, on rows that it has not seen."""

from spinney import plot
from spinney.datasets import load_spam
from spinney.ensemble import RandomForestClassifier

X, y = load_spam(return_X_y=True, as_frame=True, split="train")
X_test, y_test = load_spam(return_X_y=True, as_frame=True, split="test")
forest = RandomForestClassifier(30, random_state=0).fit(X, y)

plot.importances(forest, X_test, y_test, n_repeats=3, max_columns=15)
