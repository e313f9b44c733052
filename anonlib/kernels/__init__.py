"""What is done to records: pure functions from arrays to arrays, run on the executors."""
