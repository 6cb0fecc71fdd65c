"""Workers that each have some of the rows, and their all-reduces."""
