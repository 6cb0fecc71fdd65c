"""Export of fitted models to ONNX graphs and to C code."""

from __future__ import annotations

from spinney.export._c import export_c
from spinney.export._onnx import export_onnx

__all__ = ["export_c", "export_onnx"]
