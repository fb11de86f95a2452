"""Scores: how plausible a motion is."""
