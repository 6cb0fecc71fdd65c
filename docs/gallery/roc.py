"""ROC curve: how many mails are blocked rightly, by how many are blocked wrongly."""

from spinney import plot
from spinney.datasets import load_spam
from spinney.ensemble import RandomForestClassifier
from spinney.tree import DecisionTreeClassifier

X, y = load_spam(return_X_y=True, split="train")
X_test, y_test = load_spam(return_X_y=True, split="test")
models = {
    "random forest": RandomForestClassifier(random_state=0).fit(X, y),
    "tree of 20 leaves": DecisionTreeClassifier(max_leaf_nodes=20).fit(X, y),
}

plot.roc(models, X_test, y_test)
