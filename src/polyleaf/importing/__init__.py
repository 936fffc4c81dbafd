"""Models of other libraries, as models of polyleaf."""
