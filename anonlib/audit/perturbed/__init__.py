"""The audit of perturbed releases."""
