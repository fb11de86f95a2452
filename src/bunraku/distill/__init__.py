"""Motion out of video models (akd §4): joint angles optimised until the rendered clip is what a prior would rather see."""
