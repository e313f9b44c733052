"""What leaves the house: layouts, manifest, atomic publication, and the opened release."""
