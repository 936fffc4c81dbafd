"""Processes or threads that train one model together: what they send each other, whatever carries it."""
