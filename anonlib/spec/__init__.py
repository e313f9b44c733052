"""What the steward asks: the typed, validated release spec."""
