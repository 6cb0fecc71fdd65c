"""Learning curve: would more rows help? Dashed lines are scores on the rows of fit."""

from spinney import plot
from spinney.datasets import load_spam
from spinney.ensemble import RandomForestClassifier
from spinney.tree import DecisionTreeClassifier

X, y = load_spam(return_X_y=True)
models = {
    "tree": DecisionTreeClassifier(random_state=0),
    "random forest": RandomForestClassifier(30, random_state=0),
}

plot.learning_curve(models, X, y, sizes=[100, 300, 1000, 2000, 3500])
