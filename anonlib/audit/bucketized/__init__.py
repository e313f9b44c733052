"""The audit of bucketized releases."""
