"""Tables and targets as people have them, checked and coded."""
