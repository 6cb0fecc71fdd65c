"""Checks of report pages in a real browser.

``python tests/browser/check_pages.py [--keep FOLDER]`` renders every sample and opens it in
headless Chromium with the width of a phone and of a desktop, in the light and dark theme and as
printed. It fails if an element overflows, overlaps, is clipped, empty or hard to read, or if the
console has messages.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from spinney.report.page import render_page
from support.report_samples import SAMPLES

MEASURE = (Path(__file__).parent / "measure.js").read_text(encoding="utf-8")
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
DARK = ["--blink-settings=preferredColorScheme=0"]
SECONDS = 60  # timeout of the browser
PAPER_WIDTH = 688  # width of A4 between its margins, in CSS pixels

# A page with one defect for each check, to test that the checks detect it.
BROKEN = {
    "wide": '<div style="width:3000px">wide</div>',
    "overflow": '<div style="width:60px">unbreakablebutverylongword</div>',
    "outside": '<div style="margin-left:-40px">left of the page</div>',
    "hidden": '<div class="scroll"><table class="ranking"><tr>'
    '<td style="min-width:2000px">1</td></tr></table></div>',
    "overlap": '<svg class="chart" width="90" height="40"><path class="line" d="M0 0L9 9"/>'
    '<text x="5" y="20">one word</text><text x="9" y="22">another</text></svg>',
    "clipped": '<svg class="chart" width="90" height="40"><path class="line" d="M0 0L9 9"/>'
    '<text x="60" y="20">too far right</text></svg>',
    "empty": '<svg class="chart" width="90" height="40"><text x="5" y="20">axis</text></svg>',
    "broken": '<nav><a href="#nowhere">nowhere</a></nav>',
    "console": "<script>missing()</script>",
    "contrast": '<p style="color:#999;background:#aaa">pale</p>',
}


# Opens the pages one after another to limit memory, and keeps their results.
FRAMES = """<!doctype html><html><head><meta name="color-scheme" content="light dark"></head>
<body style="margin:0"><script>
(async () => {
  for (const [page, width] of PAGES) {
    const frame = document.createElement("iframe");
    frame.style = `border:0;width:${width}px;height:1200px;color-scheme:light dark`;
    frame.srcdoc = page;
    const loaded = new Promise((done) => { frame.onload = done; });  // language: allow
    document.body.append(frame);
    await loaded;
    const measured = frame.contentDocument.getElementById("measured");
    document.body.append(document.importNode(measured, true));
    frame.remove();
  }
})();
</script></body></html>"""


def find_browser() -> str:
    """Return Chromium's path; install it if necessary and possible."""
    for attempt in range(2):
        for name in ("chromium", "chromium-browser", "google-chrome"):
            path = shutil.which(name)
            if path:
                return path
        if (
            attempt == 0
            and hasattr(os, "geteuid")
            and os.geteuid() == 0
            and shutil.which("apt-get")
        ):
            print("installing chromium", flush=True)
            subprocess.run(["apt-get", "update", "-qq"], check=False, timeout=300)
            install = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium"]
            subprocess.run([*install, "fonts-dejavu-core"], check=False, timeout=900)
    sys.exit("check_pages needs Chromium: install it (Debian: apt-get install chromium)")


def run_browser(browser: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the browser with its own profile, so that several can run at once."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, *OPTIONS, f"--user-data-dir={profile}", "--enable-logging=stderr"]
        return subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
        )


@dataclass(frozen=True)
class Look:
    """A page, and the width and theme for rendering it."""

    name: str
    page: str
    width: int
    dark: bool = False


def measure(browser: str, looks: Sequence[Look], path: Path, *, dark: bool) -> list[list[str]]:
    """Open pages, each in a frame of its width, and return the problems of each."""
    pages = [[_measuring(look.page), look.width] for look in looks]
    source = json.dumps(pages).replace("<", "\\u003c")
    path.write_text(FRAMES.replace("PAGES", source), encoding="utf-8")
    run = run_browser(
        browser,
        [*(DARK if dark else []), "--virtual-time-budget=60000", "--window-size=1900,1200",
         "--dump-dom", path.absolute().as_uri()],
    )  # fmt: skip
    measured = re.findall(
        r'<script type="application/json" id="measured">(.*?)</script>', run.stdout
    )
    if len(measured) != len(looks):
        raise RuntimeError(f"{len(measured)} of {len(looks)} pages measured\n{run.stderr[-2000:]}")
    problems_by_page = []
    for look, text in zip(looks, measured, strict=True):
        result = json.loads(text)
        problems = list(result["problems"])
        if result["width"] != look.width:
            problems.append(f"width: is {result['width']} pixels wide, expected {look.width}")
        if (result["paper"] < 0.2) != look.dark:
            problems.append(f"theme: its paper has lightness {result['paper']:.2f}")
        problems_by_page.append([f"{look.name}: {problem}" for problem in problems])
    problems_by_page.append(
        [f"console: {line}" for line in run.stderr.splitlines() if "CONSOLE" in line]
    )
    return problems_by_page


def _measuring(page: str) -> str:
    body, end, rest = page.rpartition("</body>")
    return f"{body}<script>{MEASURE}</script>{end}{rest}"


def as_printed(page: str) -> str:
    """Apply a page's print styles to the screen, where it can be measured."""
    page = page.replace("@media print", "@media all")
    return page.replace("@media screen and", "@media print and")


def check_looks(browser: str, pages: dict[str, str], folder: Path, *, dark: bool) -> list[str]:
    """Return the problems of pages in the light theme, or in dark theme and print."""
    looks = []
    for name, page in pages.items():
        if dark:
            looks.append(Look(f"{name} dark", page, 1200, dark=True))
            looks.append(Look(f"{name} paper", as_printed(page), PAPER_WIDTH))
        else:
            looks += [Look(f"{name} at {width}", page, width) for width in (360, 1200, 1800)]
    problems_by_page = measure(
        browser, looks, folder / f"looks-{'dark' if dark else 'light'}.html", dark=dark
    )
    return [problem for problems in problems_by_page for problem in problems]


def check_pdf(browser: str, name: str, page: str, folder: Path) -> list[str]:
    """Print a page, and return the problems of the sheets."""
    source, target = folder / f"{name}.html", folder / f"{name}.pdf"
    source.write_text(page, encoding="utf-8")
    run_browser(
        browser,
        [*DARK, f"--print-to-pdf={target}", "--no-pdf-header-footer", source.absolute().as_uri()],
    )
    sheets = target.read_bytes().count(b"/Type /Page\n") if target.exists() else 0
    n_sections = page.count("<section")
    # Each section starts on a new sheet, except for the first two and the last.
    return (
        [] if sheets >= n_sections - 2 > 0 else [f"{name}: {sheets} sheets, {n_sections} sections"]
    )


def check_checks(browser: str, folder: Path) -> list[str]:
    """Return the kinds of problems that the measuring script does not detect."""
    looks = [
        Look(kind, f"<!doctype html><html><body>{body}</body></html>", 1200)
        for kind, body in BROKEN.items()
    ]
    problems_by_page = measure(browser, looks, folder / "broken.html", dark=False)
    detected = {
        kind
        for kind, problems in zip(BROKEN, problems_by_page, strict=False)
        if any(problem.startswith(f"{kind}: {kind}:") for problem in problems)
    }
    if problems_by_page[-1]:
        detected.add("console")
    return [f"the check for '{kind}' detects nothing" for kind in BROKEN if kind not in detected]


def main() -> int:
    """Run all checks; return 1 if there are problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="folder in which to leave pages and sheets")
    parser.add_argument("--only", choices=SAMPLES, help="one sample")
    options = parser.parse_args()
    browser = find_browser()
    started = time.monotonic()
    names = [options.only] if options.only else list(SAMPLES)
    pages = {name: render_page(*SAMPLES[name]()) for name in names}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(2) as pool:
            tasks = [pool.submit(check_checks, browser, folder)]
            tasks += [
                pool.submit(check_looks, browser, pages, folder, dark=dark)
                for dark in (False, True)
            ]
            tasks += [
                pool.submit(check_pdf, browser, name, pages[name], folder)
                for name in names
                if name in {"two_classes", "one_split"}
            ]
            all_problems = [problem for task in tasks for problem in task.result()]
    for problem in all_problems:
        print(problem[:300])
    print(f"{len(pages)} pages, {len(all_problems)} problems, {time.monotonic() - started:.0f} s")
    return 1 if all_problems else 0


if __name__ == "__main__":
    sys.exit(main())
