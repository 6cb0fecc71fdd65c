"""Decision boundary: what a forest says over two of four columns, paler where it is less sure."""

from sklearn.datasets import load_iris

from spinney import plot
from spinney.ensemble import RandomForestClassifier

iris = load_iris(as_frame=True)
flowers = iris.target_names[iris.target]
forest = RandomForestClassifier(random_state=0).fit(iris.data, flowers)

plot.decision_boundary(
    forest, iris.data, flowers, features=["petal length (cm)", "sepal width (cm)"]
)
