"""Centering, scaling and whitening."""

from spinney.preprocessing._whitener import Whitener

__all__ = ["Whitener"]
