"""Spinney's classes in scikit-learn's place."""

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

THEIRS = sklearn.ensemble.RandomForestClassifier


@pytest.fixture(autouse=True)
def _undo():
    yield
    spinney.unpatch_sklearn()
    assert sklearn.ensemble.RandomForestClassifier is THEIRS


def _is_ours(name="RandomForestClassifier"):
    return getattr(sklearn.ensemble, name).__module__.startswith("spinney.")


def test_names_imported_later_are_ours_and_earlier_ones_stay():
    spinney.patch_sklearn()
    from sklearn.ensemble import RandomForestClassifier

    assert RandomForestClassifier is spinney.ensemble.RandomForestClassifier
    assert THEIRS.__module__.startswith("sklearn.")
    assert not _is_ours("GradientBoostingClassifier")  # has other parameters
    model = RandomForestClassifier(n_estimators=2).fit([[0.0], [1.0]], [0, 1])
    assert isinstance(pickle.loads(pickle.dumps(model)), spinney.ensemble.RandomForestClassifier)


@pytest.mark.parametrize("names", [None, ["DecisionTreeClassifier"], ["RandomForestClassifier"]])
def test_trees_are_read_by_functions_of_the_same_names(names):
    before = sklearn.tree.DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])
    told = sklearn.tree.export_text(before)
    with spinney.patch_sklearn(names):
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.tree import DecisionTreeClassifier, export_graphviz, export_text, plot_tree

        tree = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])
        assert export_text(tree) == told == export_text(before)
        assert export_graphviz(tree).startswith("digraph")
        assert len(plot_tree(tree)) == len(plot_tree(before))
        forest = RandomForestClassifier(2, random_state=0).fit([[0.0], [1.0]], [0, 1])
        assert "class" in export_text(forest.estimators_[0])
    assert sklearn.tree.export_text.__module__.startswith("sklearn.")


def test_everything_listed_is_replaced_and_given_back():
    with spinney.patch_sklearn(replaceable_names()) as patch:
        assert patch.replaced == replaceable_names()
        for full in replaceable_names():
            module, name = full.split(".")
            assert getattr(sys.modules[f"sklearn.{module}"], name).__module__.startswith("spinney.")
    for full in replaceable_names():
        module, name = full.split(".")
        assert getattr(sys.modules[f"sklearn.{module}"], name).__module__.startswith("sklearn.")


def test_again_and_nested():
    with spinney.patch_sklearn(["RandomForestClassifier"]) as outer:
        with spinney.patch_sklearn(["ensemble.RandomForestClassifier", "IsolationForest"]):
            assert _is_ours()
            assert _is_ours("IsolationForest")
        assert _is_ours()
        assert not _is_ours("IsolationForest")
        assert outer.replaced == ["ensemble.RandomForestClassifier"]
    assert not _is_ours()
    spinney.patch_sklearn()
    spinney.patch_sklearn()
    spinney.unpatch_sklearn()
    spinney.unpatch_sklearn()
    assert not _is_ours()


def test_an_error_in_the_block_undoes_it():
    with pytest.raises(RuntimeError), spinney.patch_sklearn():
        raise RuntimeError
    assert not _is_ours()


def test_threads_leave_nothing_behind():
    seen = []

    def work():
        for _ in range(50):
            with spinney.patch_sklearn(["RandomForestClassifier"]):
                seen.append(_is_ours())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 200
    assert all(seen)
    assert not _is_ours()


def test_names_that_there_are_not():
    with pytest.raises(ValueError, match="'SVC'"):
        spinney.patch_sklearn(["SVC"])
    with pytest.raises(TypeError, match="list of names"):
        spinney.patch_sklearn("RandomForestClassifier")
    assert not _is_ours()


def test_script(tmp_path):
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


def test_command_without_script(capsys):
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert main(["no_such_script.py"]) == 2
    assert "no_such_script.py" in capsys.readouterr().err
