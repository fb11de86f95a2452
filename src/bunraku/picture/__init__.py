"""Pictures of motions by plain arithmetic: exact geometry, no window and no graphics card."""
