"""Conversion of data frames and arrays to tables, targets and schemas."""
