"""The command line and the tour."""
