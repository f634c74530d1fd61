"""From a lock and a recipe to files. Pure: the same lock, recipe and choices give the same bytes."""
