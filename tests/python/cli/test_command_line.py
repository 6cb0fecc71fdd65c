"""The ``spinney`` command: pipes, signals, completion; the output in the guide."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from support.paths import ROOT
from support.shell_runner import SHOP, Run, in_shell
from support.waiting import LIMIT, wait_until

# ----- pipes and signals


def test_pipes(shop: Path) -> None:
    ended = in_shell(
        "cat shop.csv | spinney fit - --target bought --model decision_tree --drop id -o - "
        "2>summary > m && cat shop.csv | spinney predict m - --keep id | tail -n 1 && cat summary",
        shop.parent,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"{SHOP.id.iloc[-1]},{SHOP.bought.iloc[-1]}\n")
    assert "on" in ended.stdout.splitlines()[1]


def test_closed_pipe_is_not_an_error(shop: Path, tree: Path) -> None:
    pd.concat([SHOP] * 200).to_csv(shop, index=False)
    ended = in_shell(
        "spinney predict tree.spinney shop.csv --keep-all --rows 100 | head -n 2; "
        'echo "${PIPESTATUS[0]}"',
        shop.parent,
    )
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[-1] == "141"
    assert len(ended.stdout.splitlines()) == 3


def test_a_comparison_with_a_closed_pipe(shop: Path) -> None:
    ended = in_shell(
        "spinney compare shop.csv --target bought --models baseline --cv 2 --no-report -q | true; "
        'echo "${PIPESTATUS[0]}"',
        shop.parent,
    )
    assert (ended.stdout, ended.stderr) == ("141\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full (Linux)")
def test_help_that_cannot_be_written(tmp_path: Path) -> None:
    ended = in_shell("spinney --help > /dev/full", tmp_path)
    assert (ended.returncode, ended.stderr) == (1, "spinney: No space left on device\n")


def test_streams_that_the_shell_has_closed(shop: Path, tree: Path) -> None:
    options = "--target bought --models baseline --cv 2 --no-report -q"
    for command, code, message in [
        ("spinney compare - --target bought <&-", 2, "spinney: standard input is empty\n"),
        ("spinney predict tree.spinney - <&-", 2, "spinney: standard input is empty\n"),
        ("spinney show - <&-", 2, "spinney: standard input: not a model file"),
        (f"spinney compare shop.csv {options} >&-", 0, ""),
        ("spinney predict tree.spinney shop.csv >&-", 0, ""),
        ("spinney fit shop.csv --target bought --model decision_tree -o m >&- 2>&-", 0, ""),
        ("spinney show nowhere 2>&-", 2, ""),
    ]:
        ended = in_shell(command, shop.parent)
        assert (ended.returncode, ended.stdout) == (code, ""), command
        assert ended.stderr.startswith(message), command
        assert bool(message) == bool(ended.stderr), command
        assert ended.stderr.count("\n") <= 1, command


def test_interruption_while_loading(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")  # replaces the installed command
    ended = in_shell("spinney --version", tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_model_is_read_from_and_written_to_a_pipe(shop: Path) -> None:
    fit = "spinney fit shop.csv --target bought --model decision_tree --drop id -q"
    ended = in_shell(
        f"mkfifo pipe && (cat pipe > one & {fit} -o pipe; wait) && test -p pipe && "
        # The shell does not wait for the reader of `>(...)`.
        f"{fit} -o >(cat > all && mv all two) && until test -e two; do sleep 0.02; done && "
        "spinney show - --brief < one && "
        "spinney show <(cat two) --brief && cat one | spinney predict - shop.csv | wc -l",
        shop.parent,
        timeout=LIMIT,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("decision_tree: spinney.tree.DecisionTreeClassifier") == 2
    assert ended.stdout.splitlines()[-1].strip() == str(len(SHOP) + 1)
    twice = in_shell("spinney predict - - < one", shop.parent)
    assert (twice.returncode, "both" in twice.stderr) == (2, True)
    wrong = in_shell("spinney show - < shop.csv", shop.parent)
    assert wrong.stderr.startswith("spinney: standard input: not a model file")


@pytest.mark.usefixtures("sigint_handler")
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_interruption(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    pd.concat([SHOP] * 300).to_csv(shop, index=False)
    # The command, with a callback that reports the first rounds of the fit.
    started = tmp_path_factory.mktemp("signals") / "started"
    program = f"""
import runpy
from pathlib import Path
from spinney.ensemble import GradientBoostingClassifier
fit = GradientBoostingClassifier.fit
def fit_with_callback(model, *arguments, **options):
    model.callbacks = lambda done, total: Path({str(started)!r}).touch()
    return fit(model, *arguments, **options)
GradientBoostingClassifier.fit = fit_with_callback
runpy.run_module("spinney", run_name="__main__")
"""
    arguments = ["fit", "shop.csv", "--target", "bought", "--model", "gradient_boosting"]
    arguments += ["--set", "n_estimators=1000000", "--set", "early_stopping=false", "-o", "m"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=shop.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: started.exists() or process.poll() is not None, "the fit has not started")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    # Python may exit by the signal itself, which is 130 in a shell.
    assert process.returncode in (130, -signal.SIGINT)
    assert (out, err) == ("", "spinney: interrupted\n")
    assert os.listdir(shop.parent) == ["shop.csv"]


def test_tracebacks_need_an_environment_variable(
    run: Run, tree: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("spinney.tree.DecisionTreeClassifier.predict", fail)
    ended = run("predict", tree, shop)
    assert ended.code == 1
    assert ended.err == "spinney: RuntimeError: two lines (SPINNEY_DEBUG=1 shows where)\n"
    monkeypatch.setenv("SPINNEY_DEBUG", "1")
    assert "Traceback" in run("predict", tree, shop).err


def test_usage(run: Run) -> None:
    for arguments in (["fit"], ["predict"], ["show"], ["nonsense"], ["show", "m", "--top", "0"]):
        ended = run(*arguments)
        assert ended.code == 2
        assert "Traceback" not in ended.err


def test_completion(tree: Path, shop: Path) -> None:
    def complete(words: str) -> list[str]:
        env = {
            **os.environ,
            "_SPINNEY_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        }
        script = "import sys; sys.argv = ['spinney']; from spinney.cli import main; main()"
        ended = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, cwd=shop.parent, env=env
        )
        return ended.stdout.split()

    assert {"fit", "predict", "show", "datasets", "compare"} <= set(complete("spinney "))
    assert complete("spinney fit shop.csv --model random") == ["random_forest"]
    assert complete("spinney fit shop.csv --target b") == ["bought"]
    assert complete("spinney fit nothing.csv --target b") == []
    assert complete("spinney compare shop.csv --metric roc") == ["roc_auc"]
    assert complete("spinney compare shop.csv --models bagg") == ["bagging"]
    assert complete("spinney compare shop.csv --models bagging,extra") == ["bagging,extra_trees"]
    assert set(complete("spinney datasets play")) == {"play_tennis", "play_tennis_numeric"}


# ----- the guide

GUIDE = ROOT / "docs" / "guide" / "shell.md"


def _without_numbers(text: str) -> str:
    """Mask all numbers, as times, sizes and versions differ between runs."""
    masked = re.sub(r"\d[\w.,:+-]*", "#", text)
    return "\n".join(line.rstrip() for line in masked.strip().splitlines())


def test_guide_shows_the_output(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    shown = [part for block in blocks for part in block.split("$ spinney ")[1:]]
    assert len(shown) >= 7
    for part in shown:
        command, _, expected = part.partition("\n")
        if "|" in command:
            ended = in_shell(f"spinney {command}", tmp_path)
            output = ended.stdout + ended.stderr
        else:
            output = "".join(run(*command.split())[1:])
        assert _without_numbers(output) == _without_numbers(expected), command
