"""Why a forest predicts what it does."""
