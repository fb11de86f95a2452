"""Noise and how to remove it: schedules, samplers and guidance, as pure functions that know nothing of motion."""
