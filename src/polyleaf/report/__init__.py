"""A fitted model and rows to judge it by, as one page to look at."""
