"""The test files of scikit-learn that run for each family of estimators.

In all files Spinney's classes replace those that `spinney.patch_sklearn` replaces.

To add a family, add an entry to `FAMILIES` and run ``python tests/peer/run.py FAMILY``. Each test
that fails for a good reason needs an entry in ``known_differences.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAMILIES", "Family", "Replacement"]


@dataclass(frozen=True)
class Replacement:
    """Names of one scikit-learn package to replace, also in its private modules.

    Attributes
    ----------
    theirs, ours : str
        The packages that export the names. In all modules below `theirs`, Spinney's objects
        replace scikit-learn's, so that private imports also get them.
    names : tuple of str
        The classes and functions.
    """

    theirs: str
    ours: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """The tests and replacements of one family.

    Attributes
    ----------
    files : tuple of str
        Test files, as paths inside the package ``sklearn``.
    replacements : tuple of Replacement
        Names to replace, also in private modules.
    import_first : tuple of str
        Modules to import before the replacement, so that they keep scikit-learn's objects.
    """

    files: tuple[str, ...]
    replacements: tuple[Replacement, ...]
    import_first: tuple[str, ...] = ()


FAMILIES: dict[str, Family] = {
    "tree": Family(
        files=(
            "tree/tests/test_tree.py",
            "tree/tests/test_split.py",
            "tree/tests/test_monotonic_tree.py",
            "tree/tests/test_export.py",
        ),
        replacements=(
            Replacement(
                theirs="sklearn.tree",
                ours="spinney.tree",
                names=(
                    "DecisionTreeClassifier",
                    "DecisionTreeRegressor",
                    "ExtraTreeClassifier",
                    "ExtraTreeRegressor",
                    "export_graphviz",
                    "export_text",
                    "plot_tree",
                ),
            ),
        ),
        # scikit-learn's forests and boosters need its own trees.
        import_first=("sklearn.ensemble",),
    ),
    "ensemble": Family(
        files=(
            "ensemble/tests/test_forest.py",
            "ensemble/tests/test_bagging.py",
            "ensemble/tests/test_iforest.py",
        ),
        replacements=(
            Replacement(
                theirs="sklearn.ensemble",
                ours="spinney.ensemble",
                names=(
                    "BaggingClassifier",
                    "BaggingRegressor",
                    "ExtraTreesClassifier",
                    "ExtraTreesRegressor",
                    "IsolationForest",
                    "RandomForestClassifier",
                    "RandomForestRegressor",
                    "RandomTreesEmbedding",
                ),
            ),
            # Spinney's core runs bagging with these base estimators.
            Replacement(
                theirs="sklearn.tree",
                ours="spinney.tree",
                names=("DecisionTreeClassifier", "DecisionTreeRegressor"),
            ),
        ),
        import_first=("sklearn.ensemble", "sklearn.model_selection"),
    ),
    "boosting": Family(
        files=(
            "ensemble/_hist_gradient_boosting/tests/test_gradient_boosting.py",
            "ensemble/_hist_gradient_boosting/tests/test_monotonic_constraints.py",
            "ensemble/_hist_gradient_boosting/tests/test_warm_start.py",
        ),
        replacements=(
            Replacement(
                theirs="sklearn.ensemble",
                ours="spinney.ensemble",
                names=("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
            ),
        ),
    ),
    "adaboost": Family(
        files=("ensemble/tests/test_weight_boosting.py",),
        replacements=(
            Replacement(
                theirs="sklearn.ensemble",
                ours="spinney.ensemble",
                names=("AdaBoostClassifier", "AdaBoostRegressor"),
            ),
            # Spinney's core runs AdaBoost with these base estimators.
            Replacement(
                theirs="sklearn.tree",
                ours="spinney.tree",
                names=("DecisionTreeClassifier", "DecisionTreeRegressor"),
            ),
        ),
        import_first=("sklearn.ensemble", "sklearn.model_selection"),
    ),
    "neighbors": Family(
        files=(
            "neighbors/tests/test_neighbors.py",
            "neighbors/tests/test_neighbors_pipeline.py",
            "neighbors/tests/test_graph.py",
        ),
        replacements=(
            Replacement(
                theirs="sklearn.neighbors",
                ours="spinney.neighbors",
                names=(
                    "KNeighborsClassifier",
                    "KNeighborsRegressor",
                    "KNeighborsTransformer",
                    "NearestNeighbors",
                    "RadiusNeighborsClassifier",
                    "RadiusNeighborsRegressor",
                    "RadiusNeighborsTransformer",
                ),
            ),
        ),
        import_first=("sklearn.neighbors", "sklearn.cluster", "sklearn.manifold"),
    ),
    "neighbor_trees": Family(
        files=("neighbors/tests/test_neighbors_tree.py",),
        replacements=(
            Replacement(
                theirs="sklearn.neighbors",
                ours="spinney.neighbors",
                names=("BallTree", "KDTree"),
            ),
        ),
        import_first=("sklearn.neighbors",),
    ),
    "perceptron": Family(
        files=("linear_model/tests/test_perceptron.py", "linear_model/tests/test_common.py"),
        replacements=(
            Replacement(
                theirs="sklearn.linear_model",
                ours="spinney.linear_model",
                names=("Perceptron",),
            ),
        ),
    ),
    "linear": Family(
        files=(
            "linear_model/tests/test_base.py",
            "linear_model/tests/test_ridge.py",
            "linear_model/tests/test_logistic.py",
        ),
        replacements=(
            Replacement(
                theirs="sklearn.linear_model",
                ours="spinney.linear_model",
                names=("LinearRegression", "LogisticRegression", "Ridge", "RidgeCV"),
            ),
        ),
        import_first=("sklearn.linear_model", "sklearn.ensemble", "sklearn.model_selection"),
    ),
    "mixture": Family(
        files=("mixture/tests/test_gaussian_mixture.py",),
        replacements=(
            Replacement(
                theirs="sklearn.mixture", ours="spinney.mixture", names=("GaussianMixture",)
            ),
        ),
    ),
}
