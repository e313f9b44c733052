"""What a person reads: one HTML file that tells what a release promises, whether it keeps it, and what it is worth."""
