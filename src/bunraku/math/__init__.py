"""Rotations, rigid transforms and curves: pure functions of tensors, no domain words."""
