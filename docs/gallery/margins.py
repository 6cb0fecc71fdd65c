"""Margins: more rounds of AdaBoost lift the least clear votes, also once none is wrong."""

from sklearn.datasets import make_moons

from spinney import plot
from spinney.ensemble import AdaBoostClassifier

X, y = make_moons(300, noise=0.25, random_state=0)
models = {f"{n} rounds": AdaBoostClassifier(n_estimators=n).fit(X, y) for n in (5, 50, 500)}

plot.margins(models, X, y)
