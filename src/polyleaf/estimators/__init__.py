"""The scikit-learn estimators: thin faces on the boosting loop and the forest."""
