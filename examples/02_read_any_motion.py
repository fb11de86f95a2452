"""Read a motion from any file, look at its joints in the world, cut it, resample it, and write it as NPZ.

Usage: python examples/02_read_any_motion.py walk.bvh [OUT.npz]
"""

from __future__ import annotations

import sys

import bunraku

motion = bunraku.load_motion(sys.argv[1])
print(motion, "on", motion.skeleton)

poses = bunraku.forward_kinematics(motion)
print("world positions of all joints [m]:", tuple(poses.p_world_joint.shape))
if motion.skeleton.has("left_hand"):
    hand = poses.p_world_joint[:, motion.skeleton.role("left_hand")]
    print("highest left hand [m]:", round(float(hand[:, 1].max()), 3))

middle = bunraku.resample(motion[len(motion) // 4 : len(motion) // 2 + 1], 60.0)
if len(sys.argv) > 2:
    bunraku.save_motion(middle, sys.argv[2])
    print("wrote", sys.argv[2], middle)
