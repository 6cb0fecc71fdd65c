"""Models for others: as ONNX graphs."""

from __future__ import annotations

from spinney.export._onnx import export_onnx

__all__ = ["export_onnx"]
