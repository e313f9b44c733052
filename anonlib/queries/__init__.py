"""What can be counted: predicates and estimators, pure."""
