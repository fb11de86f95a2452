"""Text and constraints to motion: the two-stage motion diffusion model of the Kimodo paper, from features to clean-up."""
