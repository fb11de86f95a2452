"""Where motion with captions comes from: one file per collection."""
