"""Workers that hold a part of the rows each, and their all-reduce."""
