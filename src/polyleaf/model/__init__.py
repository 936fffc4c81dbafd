"""The fitted model: a forest as flat arrays, and its file."""
