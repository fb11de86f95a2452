"""Bodies and their motion: skeletons, roles, forward and inverse kinematics, contacts, retargeting."""
