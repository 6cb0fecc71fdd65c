"""Models for others: as ONNX graphs, and as C."""

from __future__ import annotations

from spinney.export._c import export_c
from spinney.export._onnx import export_onnx

__all__ = ["export_c", "export_onnx"]
