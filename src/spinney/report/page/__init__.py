"""The page that a comparison is read on: one file of HTML that needs nothing else."""

from spinney.report.page.page import render_page, write_page

__all__ = ["render_page", "write_page"]
