"""Fixed partitions and quad trees."""
