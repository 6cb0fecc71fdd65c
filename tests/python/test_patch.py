"""`patch_sklearn`: Spinney's classes replace scikit-learn's."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import pytest
import sklearn.ensemble
import sklearn.tree

import spinney
from spinney.patch import main, replaceable_names

ORIGINAL = sklearn.ensemble.RandomForestClassifier


@pytest.fixture(autouse=True)
def _undo():
    yield
    spinney.unpatch_sklearn()
    assert sklearn.ensemble.RandomForestClassifier is ORIGINAL


def _is_patched(name="RandomForestClassifier"):
    return getattr(sklearn.ensemble, name).__module__.startswith("spinney.")


def test_patch_affects_later_imports_only():
    spinney.patch_sklearn()
    # The patch affects only later imports.
    from sklearn.ensemble import RandomForestClassifier

    assert RandomForestClassifier is spinney.ensemble.RandomForestClassifier
    assert ORIGINAL.__module__.startswith("sklearn.")
    assert not _is_patched("GradientBoostingClassifier")  # has other parameters
    model = RandomForestClassifier(n_estimators=2).fit([[0.0], [1.0]], [0, 1])
    assert isinstance(pickle.loads(pickle.dumps(model)), spinney.ensemble.RandomForestClassifier)


@pytest.mark.parametrize("names", [None, ["DecisionTreeClassifier"], ["RandomForestClassifier"]])
def test_export_functions_accept_trees_of_both_libraries(names):
    sklearn_tree = sklearn.tree.DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])
    expected = sklearn.tree.export_text(sklearn_tree)
    with spinney.patch_sklearn(names):
        # The patch affects only later imports.
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.tree import DecisionTreeClassifier, export_graphviz, export_text, plot_tree

        tree = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])
        assert export_text(tree) == expected == export_text(sklearn_tree)
        assert export_graphviz(tree).startswith("digraph")
        assert len(plot_tree(tree)) == len(plot_tree(sklearn_tree))
        forest = RandomForestClassifier(2, random_state=0).fit([[0.0], [1.0]], [0, 1])
        assert "class" in export_text(forest.estimators_[0])
    assert sklearn.tree.export_text.__module__.startswith("sklearn.")


def test_all_replaceable_names_are_replaced_and_restored():
    with spinney.patch_sklearn(replaceable_names()) as patch:
        assert patch.replaced == replaceable_names()
        for full in replaceable_names():
            module, name = full.split(".")
            assert getattr(sys.modules[f"sklearn.{module}"], name).__module__.startswith("spinney.")
    for full in replaceable_names():
        module, name = full.split(".")
        assert getattr(sys.modules[f"sklearn.{module}"], name).__module__.startswith("sklearn.")


def test_patches_can_be_nested_and_repeated():
    with spinney.patch_sklearn(["RandomForestClassifier"]) as outer:
        with spinney.patch_sklearn(["ensemble.RandomForestClassifier", "IsolationForest"]):
            assert _is_patched()
            assert _is_patched("IsolationForest")
        assert _is_patched()
        assert not _is_patched("IsolationForest")
        assert outer.replaced == ["ensemble.RandomForestClassifier"]
    assert not _is_patched()
    spinney.patch_sklearn()
    spinney.patch_sklearn()
    spinney.unpatch_sklearn()
    spinney.unpatch_sklearn()
    assert not _is_patched()


def test_error_in_the_block_restores_the_names():
    with pytest.raises(RuntimeError), spinney.patch_sklearn():
        raise RuntimeError
    assert not _is_patched()


def test_concurrent_patches_restore_the_names():
    results = []

    def work():
        for _ in range(50):
            with spinney.patch_sklearn(["RandomForestClassifier"]):
                results.append(_is_patched())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 200
    assert all(results)
    assert not _is_patched()


def test_unknown_names_raise():
    with pytest.raises(ValueError, match="'SVC'"):
        spinney.patch_sklearn(["SVC"])
    with pytest.raises(TypeError, match="list of names"):
        spinney.patch_sklearn("RandomForestClassifier")
    assert not _is_patched()


def test_command_runs_a_script_with_the_patch(tmp_path):
    (tmp_path / "helper.py").write_text("from sklearn.tree import DecisionTreeClassifier\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom helper import DecisionTreeClassifier\n"
        "print(DecisionTreeClassifier.__module__, *sys.argv[1:])\n"
        "import spinney; spinney.unpatch_sklearn()\n"
        "from sklearn.tree import DecisionTreeClassifier\n"
        "print(DecisionTreeClassifier.__module__)\nsys.exit(3)\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "spinney.patch", str(script), "a", "--b"],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = run.stdout.splitlines()
    assert lines[0].startswith("spinney.tree")
    assert lines[0].endswith("a --b")
    assert lines[1].startswith("sklearn.tree")
    assert run.returncode == 3


def test_command_reports_missing_scripts(capsys):
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert main(["no_such_script.py"]) == 2
    assert "no_such_script.py" in capsys.readouterr().err
