"""What a run is asked for: the table of parameters, its rules, and which go together."""
