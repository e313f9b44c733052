"""Sub-tables of small domains for perturbation; from counts alone."""
