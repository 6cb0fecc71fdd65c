"""Reference implementations: slow, simple versions of the fast routines."""
