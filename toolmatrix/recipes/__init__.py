"""Recipes: how each thing is got or built, and which step holds for which versions. Data in `recipes/*.yaml`."""
