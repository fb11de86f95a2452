"""Meshes and simple solids: geometry without bones."""
