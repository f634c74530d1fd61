"""Facts: the model of a sourced statement about versions, its loading, checking and compiled index."""
