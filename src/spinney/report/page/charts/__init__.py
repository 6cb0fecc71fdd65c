"""Charts of a report: functions from evidence to SVG, or to None if there is no data."""

__all__: list[str] = []
