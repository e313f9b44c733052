"""What a release is worth: workloads, utility, attacks."""
