"""Tree: the questions, and what each node says."""

from sklearn.datasets import load_iris

from spinney import plot
from spinney.tree import DecisionTreeClassifier

iris = load_iris(as_frame=True)
tree = DecisionTreeClassifier(max_depth=3).fit(iris.data, iris.target_names[iris.target])

plot.tree(tree, max_depth=2)
