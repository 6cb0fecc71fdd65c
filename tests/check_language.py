"""Count phrases that the project replaces by plain English and the field's terms.

    python tests/check_language.py                      # counts, and the check of the budgets
    python tests/check_language.py --list               # every match, and what to write instead
    python tests/check_language.py --list --files 'src/spinney/tree/*' docs/guide/trees.md
    python tests/check_language.py --update             # lower the budgets to the counts
    python tests/check_language.py --update --raise     # after adding a phrase or moving files

The phrases and the budget of each area are in `language_phrases.toml`. The check fails if an area
has more matches than its budget, and also if it has fewer: lower the budget then, so that counts
only go down. A line with "language: allow" in a comment is not counted.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RULES = Path(__file__).resolve().with_name("language_phrases.toml")
ALLOW = "language: allow"

# Project text: these paths without the excluded ones (`*` matches `/` too).
INCLUDED = (
    *("src/*", "cpp/*", "bindings/*", "tests/*", "benchmarks/*", "docs/*", ".ci/run"),
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *("pyproject.toml", "CMakeLists.txt"),
)
EXCLUDED = (
    *("tests/golden/*", "tests/data/*", "tests/fuzz/corpus/*", "benchmarks/results/*"),
    *("*.svg", "src/spinney/datasets/SPAM.txt"),
    *("tests/check_language.py", "tests/language_phrases.toml"),
    "tests/python/test_check_language.py",
)

# A space in a pattern also matches a line break, with the indent and comment mark that follow it.
_SPACE = r"(?:\s+(?:(?://+|\#+|\*)\s+)?)"


@dataclass(frozen=True)
class Phrase:
    """A phrase to replace, and the paths that it applies to."""

    name: str
    use: str
    only: tuple[str, ...]
    excluded: tuple[str, ...]
    regex: re.Pattern[str]

    @staticmethod
    def from_entry(entry: Mapping[str, Any]) -> Phrase:
        """Compile an entry of the phrase list; patterns match whole words, in any case."""
        unknown = set(entry) - {"pattern", "name", "use", "only", "except"}
        if unknown:
            raise ValueError(f"unknown keys in a phrase: {sorted(unknown)}")
        pattern = entry["pattern"]
        regex = re.compile(rf"(?<!\w)(?:{pattern.replace(' ', _SPACE)})(?!\w)", re.IGNORECASE)
        only, excluded = tuple(entry.get("only", ("*",))), tuple(entry.get("except", ()))
        return Phrase(entry.get("name", pattern), entry["use"], only, excluded, regex)

    def applies_to(self, path: str) -> bool:
        """Return whether the phrase is searched in a file."""
        return _matches_any(path, self.only) and not _matches_any(path, self.excluded)


@dataclass(frozen=True)
class Match:
    """One place in a file where a phrase occurs."""

    path: str
    line: int
    text: str
    phrase: Phrase

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}  [{self.phrase.name} → {self.phrase.use}]"


@dataclass(frozen=True)
class Rules:
    """The phrases, allowed lines (path, part of the line) and the budget of each area."""

    phrases: tuple[Phrase, ...]
    allowed: tuple[tuple[str, str], ...]
    budget: Mapping[str, int]

    @staticmethod
    def from_toml(text: str) -> Rules:
        """Parse the text of `language_phrases.toml`."""
        data = tomllib.loads(text)
        return Rules(
            tuple(Phrase.from_entry(entry) for entry in data["phrase"]),
            tuple((entry["path"], entry["text"]) for entry in data.get("allow", ())),
            data.get("budget", {}),
        )


def _matches_any(path: str, globs: Iterable[str]) -> bool:
    return any(fnmatch(path, glob) for glob in globs)


def area_of(path: str) -> str:
    """Return the area of a path: a package of `src` or `cpp`, else the top-level name."""
    parts = path.split("/")
    if parts[0] in ("src", "cpp"):
        return "/".join(parts[:-1][:3])
    return parts[0]


def find_matches(path: str, text: str, rules: Rules) -> Iterator[Match]:
    """Yield the matches in a file by phrase; words of identifiers count, too."""
    lines = text.split("\n")
    words = text.replace("_", " ")
    for phrase in rules.phrases:
        if not phrase.applies_to(path):
            continue
        for found in phrase.regex.finditer(words):
            number = text.count("\n", 0, found.start())
            line = lines[number]
            if ALLOW in line or any(path == p and part in line for p, part in rules.allowed):
                continue
            yield Match(path, number + 1, line.strip(), phrase)


def count_by_area(matches: Iterable[Match]) -> dict[str, int]:
    """Return the number of matches in each area that has any, by name."""
    return dict(sorted(Counter(area_of(match.path) for match in matches).items()))


def budget_errors(counts: Mapping[str, int], budget: Mapping[str, int]) -> list[str]:
    """Return a message for each area whose count differs from its budget (default 0)."""
    errors = []
    for area in sorted(counts.keys() | budget.keys()):
        count, most = counts.get(area, 0), budget.get(area, 0)
        if count > most:
            errors.append(f"{area}: {count} phrases, budget {most}; see --list --files '{area}*'")
        elif count < most:
            errors.append(f"{area}: {count} phrases, budget {most}; lower the budget to {count}")
    return errors


def with_budget(text: str, counts: Mapping[str, int]) -> str:
    """Replace the `[budget]` table at the end of the TOML text by the given counts."""
    head, _, _ = text.partition("\n[budget]\n")
    lines = [f'"{area}" = {count}' for area, count in sorted(counts.items()) if count]
    return "\n".join([head.rstrip("\n"), "", "[budget]", *lines, ""])


def read_project(root: Path) -> Iterator[tuple[str, str]]:
    """Yield path and text of each tracked text file that is checked."""
    command = ["git", "-C", str(root), "ls-files", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for path in filter(None, listed.split("\0")):
        if not _matches_any(path, INCLUDED) or _matches_any(path, EXCLUDED):
            continue
        try:
            yield path, (root / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # a binary file, or one that is deleted but not yet committed


def _table(title: str, counts: Iterable[tuple[str, int]]) -> str:
    rows = [f"{count:7,}  {name}" for name, count in counts]
    return "\n".join([f"{title}:", *rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts; return 1 if an area does not match its budget."""
    parser = argparse.ArgumentParser(description="Count phrases to replace by plain English.")
    parser.add_argument("--list", action="store_true", help="print every match")
    parser.add_argument("--files", nargs="+", metavar="GLOB", help="only these paths, unchecked")
    parser.add_argument("--update", action="store_true", help="lower the budgets to the counts")
    parser.add_argument(
        "--raise", dest="may_raise", action="store_true", help="with --update: raise them, too"
    )
    options = parser.parse_args(arguments)
    if options.files and options.update:
        parser.error("--update needs all files")

    rules_text = RULES.read_text(encoding="utf-8")
    rules = Rules.from_toml(rules_text)
    matches = [
        match
        for path, text in read_project(ROOT)
        if not options.files or _matches_any(path, options.files)
        for match in find_matches(path, text, rules)
    ]
    if options.list:
        for match in sorted(matches, key=lambda match: (match.path, match.line)):
            print(match)
        print()
    by_phrase = Counter(match.phrase.name for match in matches)
    counts = count_by_area(matches)
    print(_table("Matches by phrase", by_phrase.most_common()))
    print(_table("Matches by area", counts.items()))
    print(f"Total: {len(matches):,}")
    if options.files:
        return 0

    budget = dict(rules.budget)
    if options.update:
        areas = counts.keys() | budget.keys()
        new = {area: counts.get(area, 0) for area in areas}
        if not options.may_raise:
            new = {area: min(count, budget.get(area, 0)) for area, count in new.items()}
        RULES.write_text(with_budget(rules_text, new), encoding="utf-8")
        budget = new
    errors = budget_errors(counts, budget)
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `--list | head` ends without a traceback
    sys.exit(main())
