"""Model files: save, load, describe."""
