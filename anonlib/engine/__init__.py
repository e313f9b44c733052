"""Where it runs: the only package that imports pyspark. DataFrame API only, so that it runs under Spark Connect."""
