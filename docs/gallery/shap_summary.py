"""Shapley values: what each column adds to the log-odds of spam, a dot for each e-mail."""

from spinney import plot
from spinney.datasets import load_spam
from spinney.ensemble import GradientBoostingClassifier
from spinney.inspection import explain

X, y = load_spam(return_X_y=True, as_frame=True, split="train")
X_test, _ = load_spam(return_X_y=True, as_frame=True, split="test")
model = GradientBoostingClassifier(n_estimators=100, random_state=0).fit(X, y)

plot.shap_summary(explain(model, X_test), max_columns=10, max_rows=200)
