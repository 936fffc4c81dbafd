"""A search for parameters: what to search, what to try next, when to give up, and what came of it."""
