"""What the author asks for: prompts in time, and constraints on the body."""
