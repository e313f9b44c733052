"""The notebook's verbs. Each builds the same ReleaseSpec that YAML builds: two doors, one corridor."""
