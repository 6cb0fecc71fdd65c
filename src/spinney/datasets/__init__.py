"""Data sets that come with Spinney."""

from spinney.datasets._spam import load_spam

__all__ = ["load_spam"]
