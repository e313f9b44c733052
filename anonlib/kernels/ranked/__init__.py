"""Kernels that see a record's sensitive value and its rank: deals and perturbation."""
