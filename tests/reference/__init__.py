"""Slow and simple versions of the fast routines, to compare with."""
