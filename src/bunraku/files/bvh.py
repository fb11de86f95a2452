"""BVH: the oldest and plainest motion file. This is the door; the rooms are `bvh_grammar`, `bvh_read`, `bvh_known`, `bvh_write`.

Read is any dialect. A joint's rotation channels turn about the axes in the order written, each about the axes turned so far
(`Zrotation Yrotation Xrotation` is Rz·Ry·Rx). Position channels *replace* OFFSET, also on joints other than the root, as Blender
and bvhio have it; an axis without a position channel stays at its OFFSET, as in bvhio (Blender puts 0). What the format leaves
open is assumed and noted in `motion.provenance.notes`:

- `unit`: BVH names none. Rest poses that span up to 3.5 units are in metres, those with the CMU database's joint names that span
  less than 100 in its unit, all others in centimetres. `load_bvh(path, unit=…)` overrides.
- `up`: Y is up, unless hips and head lie along +Z from the feet both at rest and in the first frame.
- `fps`, `names`, `end_sites`: a rounded frame time, joint names that repeat, several End Sites on one joint.
- `skeleton`, `wrapper`: joints that are those of a library skeleton are given back as that skeleton (see `bvh_known`).

Written is always centimetres, six decimals, `Zrotation Yrotation Xrotation`. SOMA skeletons are written as Kimodo does: a
motionless wrapper `Root`, Hips at OFFSET 0 100 0 with six channels, no End Sites, zero rotations meaning the BONES-SEED rest (or
the T-pose with `tpose=True`). All others: the root with six channels, others with three, or six if they leave their offset; every
leaf has an End Site, of no length where the skeleton knows no tip.

BVH holds joints and frames and nothing else: no comments, and each place where some readers would overlook a remark makes others
refuse the file. So the skeleton's name, contacts, roles and provenance (prompt, seed, model, version) are not written here; the
frame rate is. `files/sidecar.py` keeps the others beside the file.
"""

from bunraku.files.bvh_read import load_bvh
from bunraku.files.bvh_write import save_bvh

__all__ = ["load_bvh", "save_bvh"]
