"""What a run is asked for: the table of parameters, its rules, and the table of what does not go together."""
