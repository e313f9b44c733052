"""Buckets for matching, and the partitions that can keep them; from counts alone."""
