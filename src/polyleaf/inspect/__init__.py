"""The trees as people read them: named nodes, frames, plain data, leaves, and what features count for."""
