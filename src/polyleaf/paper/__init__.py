"""The experiments of the GBDT-MO paper, run again: ``polyleaf paper``."""
