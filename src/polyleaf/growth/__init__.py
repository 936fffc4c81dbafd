"""Growing trees: the rules, and the grower that applies them to one round's gradients."""
