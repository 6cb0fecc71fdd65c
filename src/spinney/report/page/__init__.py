"""The HTML page of a report: one file without external resources."""

from spinney.report.page.page import render_page, write_page

__all__ = ["render_page", "write_page"]
