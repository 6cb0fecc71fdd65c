"""Charts of a report: each a function from evidence to SVG, None if there is nothing to draw."""

__all__: list[str] = []
