"""Facts read at their sources: each module reads one kind of source, and each family one file of facts.

A family is data (matrix/families.yaml); its `kind` names the module that reads it, which has the function
`harvest(family, context)` and returns the document of a fact file (docs/facts.md).
"""
