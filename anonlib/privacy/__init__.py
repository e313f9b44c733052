"""What is promised: exact predicates on counts. Pure: no Spark, no floats in a comparison."""
