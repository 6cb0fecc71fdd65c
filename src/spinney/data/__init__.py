"""Data frames and arrays as columns, schemas, targets and core tables."""
