"""Comparison trees: each split tests which of two pivots a row is closer to."""
