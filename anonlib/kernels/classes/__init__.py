"""Kernels that cut the records of a partition into equivalence classes."""
