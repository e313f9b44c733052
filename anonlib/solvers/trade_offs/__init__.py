"""What a bound costs: the bound of a method from strict to loose, and what is lost at each, from counts alone."""
