"""What motions and characters are on disk."""
