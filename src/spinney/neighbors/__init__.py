"""Nearest neighbours."""

from spinney.neighbors._hnsw import HNSW

__all__ = ["HNSW"]
