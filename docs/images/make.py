"""Make the README's pictures: the command in a terminal, and the top of its report.

    python docs/images/make.py

It runs `spinney compare` and takes pictures with Chromium.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
COLUMNS = 76
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>
body {{ margin: 0; background: #16181d; color: #d8dbe2 }}
pre {{ margin: 0; padding: 18px 22px; font: 15px/1.35 'DejaVu Sans Mono', monospace }}
</style><pre>$ spinney compare
{body}</pre>"""


def main() -> None:
    """Run the command and photograph what it shows."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
        command = [sys.executable, "-m", "spinney", "compare", "-q"]
        said = subprocess.run(
            command, env=environment, cwd=folder, check=True, capture_output=True, text=True
        ).stdout
        console = Console(record=True, width=COLUMNS, file=io.StringIO())
        console.print(Text.from_ansi(said))
        body = console.export_html(inline_styles=True, code_format="{code}")
        body = body.replace("#008000", "#4cc38a")  # green that can be read on black
        terminal = Path(folder) / "terminal.html"
        terminal.write_text(PAGE.format(body=body), encoding="utf-8")
        lines = said.count("\n") + 2
        photograph(terminal, HERE / "terminal.png", 740, 36 + round(lines * 15 * 1.35))
        report = Path(folder) / "spinney-report" / "report.html"
        photograph(report, HERE / "report.png", 1200, 1500)


def photograph(page: Path, picture: Path, width: int, height: int) -> None:
    """Take a picture of the top of a page."""
    chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options = [f"--window-size={width},{height}", f"--screenshot={picture}"]
    subprocess.run([*chromium, *options, page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    main()
