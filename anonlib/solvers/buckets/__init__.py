"""Buckets of sensitive values: sizes, numbers, contents, fakes; from counts alone."""
