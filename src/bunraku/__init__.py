"""Bunraku turns words into motion for 3D characters."""

__version__ = "0.1.0"
