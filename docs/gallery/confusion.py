"""Confusion: which digits are taken for which."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from spinney import plot
from spinney.tree import DecisionTreeClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
tree = DecisionTreeClassifier(random_state=0).fit(X, y)

plot.confusion(tree, X_test, y_test)
