"""What equivalence classes hold and where a table is cut for them."""
