"""Kernels that match the records of a partition and box the matches."""
