"""What is chosen: driver-side solvers, pure; each answers from counts alone and says its loss, bound and status."""
