"""Precision and recall of each class against the others, and their mean."""

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from spinney import plot
from spinney.tree import DecisionTreeClassifier

X, y = load_wine(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=1)
tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=5).fit(X, y)

plot.precision_recall(tree, X_test, y_test)
