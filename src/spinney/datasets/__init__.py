"""Data sets that are included in Spinney."""

from spinney.datasets._play_tennis import load_play_tennis
from spinney.datasets._spam import load_spam

__all__ = ["load_play_tennis", "load_spam"]
