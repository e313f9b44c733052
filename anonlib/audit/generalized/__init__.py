"""The audit of generalized releases."""
