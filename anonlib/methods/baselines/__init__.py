"""Baselines: methods to compare with, on the same layouts."""
