"""Calibration: do probabilities come true? AdaBoost's votes are far too careful."""

from spinney import plot
from spinney.datasets import load_spam
from spinney.ensemble import AdaBoostClassifier, RandomForestClassifier

X, y = load_spam(return_X_y=True, split="train")
X_test, y_test = load_spam(return_X_y=True, split="test")
models = {
    "random forest": RandomForestClassifier(random_state=0).fit(X, y),
    "AdaBoost": AdaBoostClassifier(n_estimators=200).fit(X, y),
}

plot.calibration(models, X_test, y_test)
