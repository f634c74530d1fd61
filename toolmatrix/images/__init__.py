"""Images, from bytes to a tree of files: engines, archives, layouts, registries, and the layers inside."""
