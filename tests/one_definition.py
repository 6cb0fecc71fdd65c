"""Find C++ names with definitions in two files (one-definition rule).

    python tests/one_definition.py [FOLDER ...]

If two inline functions or members of types have the same name, the linker keeps one of them without
a warning. So each name outside anonymous namespaces may be defined in one file only: a type, alias,
constant, variable, or a function with the same parameter types. The check ignores functions that
macros define. It includes headers that are never included together, because this may change.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = [ROOT / "cpp", ROOT / "bindings", ROOT / "tests" / "cpp"]

_SKIPPED = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | R"(\w*)\(.*?\)\1" | "(?:\\.|[^"\\\n])*" | (?<!\w)'(?:\\.|[^'\\])+'
    | ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w'.]*|::|->|&&|[^\s\w]")
_OPEN = {"(": ")", "[": "]", "{": "}"}
_TYPES = {"struct", "class", "union", "enum"}


def find_duplicates(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return the names that several files define, with these files.

    Parameters
    ----------
    sources : dict
        Text of each file by its name.

    Returns
    -------
    dict
        Files by name, such as ``"spinney::load(const double*)"``.
    """
    files = defaultdict(set)
    for file, text in sources.items():
        for name in definitions(text):
            if name != "main()":  # one for each program
                files[name].add(file)
    return {name: sorted(paths) for name, paths in sorted(files.items()) if len(paths) > 1}


def definitions(text: str) -> Iterator[str]:
    """Yield the qualified name of each definition outside anonymous namespaces."""
    tokens = _TOKEN.findall(_SKIPPED.sub(_replacement, text))
    yield from _in_namespace(tokens, 0, "")


def _replacement(match: re.Match[str]) -> str:
    return "0" if match[0][0] in "\"'R" else " "  # a literal is a value


def _in_namespace(tokens: list[str], at: int, scope: str | None) -> Iterator[str]:
    """Yield the definitions up to the end of a namespace; `scope` None: anonymous."""
    while at < len(tokens) and tokens[at] != "}":
        head, body, at = _statement(tokens, at)
        if "namespace" in head[:2] and body is not None:
            name = "".join(head[head.index("namespace") + 1 :])
            inner = None if scope is None or not name else f"{scope}{name}::"
            yield from _in_namespace(tokens, body, inner)
        elif head[:1] == ["extern"] and head[1:] == ["0"] and body is not None:
            yield from _in_namespace(tokens, body, scope)
        elif scope is not None and "static" not in head:
            name = _defined(head, body is not None)
            if name:
                yield scope + name


def _statement(tokens: list[str], at: int) -> tuple[list[str], int | None, int]:
    """Read a statement; return its head, the start of its body, and its end."""
    head: list[str] = []
    if re.fullmatch(r"[A-Z][A-Z_0-9]+", tokens[at]) and tokens[at + 1 : at + 2] == ["("]:
        end = _after(tokens, at + 1)  # a macro call
        return [], None, _after(tokens, end) if tokens[end : end + 1] == ["{"] else end
    initialisers = False  # of a constructor
    while at < len(tokens):
        token = tokens[at]
        if token == ";":
            return head, None, at + 1
        if token == "{":
            previous = head[-1] if head else ""
            is_value = "=" in _outside(head) and "operator" not in head
            is_member = initialisers and (
                previous == ">" or previous[-1:].isalnum() or previous[-1:] == "_"
            )
            end = _after(tokens, at)
            if is_value or is_member:
                head += ["{", "}"]
                at = end
                continue
            if _TYPES & set(_outside(head)) and "(" not in _outside(_without_alignment(head)):
                while tokens[end] != ";":  # variables of the type
                    end += 1
                end += 1
            elif (
                "(" not in _outside(head) and "namespace" not in head[:2] and head[:1] != ["extern"]
            ):
                head += ["{", "}"]  # a variable
                at = end
                continue
            return head, at + 1, end
        if token == ":" and head[-1:] and ")" in head and not (_TYPES & set(_outside(head))):
            initialisers = True
        if token in ("(", "["):
            end = _after(tokens, at)
            head += tokens[at:end]
            at = end
            continue
        head.append(token)
        at += 1
    return head, None, at


def _after(tokens: list[str], at: int) -> int:
    """Return the position after the bracket that closes the one at `at`."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at] in _OPEN) - (tokens[at] in _OPEN.values())
        at += 1
        if depth == 0:
            break
    return at


def _outside(head: list[str]) -> list[str]:
    """Remove the contents of brackets and template parameters; keep the brackets."""
    outside, depth, angles = [], 0, 0
    for i, token in enumerate(head):
        if token in _OPEN.values():
            depth -= 1
        if depth == 0:
            if token == "<" and i > 0 and (head[i - 1][-1:].isalnum() or head[i - 1][-1:] == "_"):
                angles += 1
            elif token == ">" and angles:
                angles -= 1
            elif not angles:
                outside.append(token)
        if token in _OPEN:
            depth += 1
    return outside


def _without_alignment(head: list[str]) -> list[str]:
    kept, at = [], 0
    while at < len(head):
        if head[at] in ("alignas", "__attribute__", "requires", "decltype") and head[
            at + 1 : at + 2
        ] == ["("]:
            at = _after(head, at + 1)
            continue
        kept.append(head[at])
        at += 1
    return kept


def _defined(head: list[str], has_body: bool) -> str:
    """Return the name that a statement defines, or ""."""
    head = _without_alignment(head)
    outside = _outside(head)
    if not outside or outside[0] == "namespace" or (outside[0] == "using" and "=" not in outside):
        return ""
    if outside[:1] == ["template"]:
        outside = outside[1:]
    if outside[:1] == ["using"]:
        return outside[1]
    kinds = [token for token in outside if token in _TYPES]
    if kinds and "(" not in outside:
        if not has_body:
            return ""
        start = head.index(kinds[-1]) + 1
        end = start
        while end < len(head) and head[end] not in (":", "final", "{"):
            end += 1
        return "".join(token for token in head[start:end] if token not in _TYPES)
    is_function = "(" in outside and outside[-1] in ("default", "delete")
    if "=" in outside and "operator" not in outside and not is_function:
        if "extern" in outside:
            return ""
        before = outside[: outside.index("=")]
        before = before[: before.index("[")] if "[" in before else before
        return before[-1]
    if "(" not in outside:  # a variable with a value in braces, or a forward declaration
        return outside[outside.index("{") - 1] if "{" in outside else ""
    if not (has_body or is_function):
        return ""
    at = _parameters_at(head)
    name = [head[at - 1]]
    if "operator" in head[:at]:
        name = head[head.index("operator") : at]
        first = head.index("operator")
    else:
        first = at - 1
        if head[first - 1 : first] == ["~"]:
            first -= 1
            name = ["~", *name]
    while head[first - 1 : first] == ["::"]:
        end, first = first, first - 2
        if head[first] == ">":  # of a class template
            first = _before_angles(head, first)
        name = head[first:end] + name
    parameters = head[at + 1 : _after(head, at) - 1]
    return f"{''.join(name)}({', '.join(_types(parameters))})"


def _before_angles(head: list[str], at: int) -> int:
    """Return the position of the name before the template parameters that end at `at`."""
    depth = 0
    while True:
        depth += (head[at] == ">") - (head[at] == "<")
        at -= 1
        if depth == 0:
            return at


def _parameters_at(head: list[str]) -> int:
    """Return the position of the bracket that opens a function's parameters."""
    angles = 0
    for i, token in enumerate(head):
        if (
            token == "<"
            and (head[i - 1][-1:].isalnum() or head[i - 1][-1:] == "_")
            and head[i - 1] != "operator"
        ):
            angles += 1
        elif token == ">" and angles:
            angles -= 1
        elif token == "(" and not angles:
            if head[i - 1] == "operator":  # the call operator
                return i + 2
            return i
    raise ValueError(f"no parameters: {' '.join(head)}")


def _types(parameters: list[str]) -> list[str]:
    """Return the types of parameters, without their names and defaults."""
    split: list[list[str]] = [[]]
    depth = 0
    for token in parameters:
        depth += (token in {*_OPEN, "<"}) - (token in {*_OPEN.values(), ">"})
        if token == "," and depth == 0:
            split.append([])
        else:
            split[-1].append(token)
    kinds = []
    for parameter in split:
        parameter = parameter[: parameter.index("=")] if "=" in parameter else parameter
        if (
            len(parameter) > 1
            and re.fullmatch(r"\w+", parameter[-1])
            and parameter[-2] != "::"
            and (parameter[-1] not in ("const", "int", "char", "long", "double", "float", "bool"))
            and not (len(parameter) == 2 and parameter[0] == "const")
        ):
            parameter = parameter[:-1]
        kinds.append(re.sub(r" (?=[*&,<>:])|(?<=[<:]) ", "", " ".join(parameter)))
    return [kind for kind in kinds if kind]


def read_sources(folders: list[Path]) -> dict[str, str]:
    """Read all headers and sources below some folders."""
    files = [file for folder in folders for file in sorted(folder.rglob("*.[ch]*"))]
    files = [file for file in files if file.suffix in (".h", ".cpp")]
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def main() -> int:
    """Print the names that several files define; their number is the exit status."""
    sources = read_sources([Path(name).resolve() for name in sys.argv[1:]] or FOLDERS)
    duplicates = find_duplicates(sources)
    for name, files in duplicates.items():
        print(f"{name}: {', '.join(files)}")
    return min(len(duplicates), 100)


if __name__ == "__main__":
    sys.exit(main())
