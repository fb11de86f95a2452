"""How a character looks: Gaussian splats, the camera that sees them, and rasterisers that run anywhere."""
