"""Give a mesh a skeleton and skin weights: a character that every motion can be put on.

  bunraku rig dino.obj --skeleton dino.json -o dino.glb --report dino.png
  bunraku rig statue.stl --up z --unit 0.001 -o statue.glb
  bunraku rig dog.glb --skeleton quadruped --joints dog.json -o dog.glb

Without --skeleton the template that fits best is fitted. Joints that sit wrong (look at --report) can be moved by hand: a few with --nudge,
or all by writing them with --joints, editing that JSON and giving it as --skeleton. It looks like this, in the numbers of the mesh's file:

  {"joints": [{"name": "hips", "parent": null, "head": [0, 1, 0], "role": "hips"},
              {"name": "spine", "parent": "hips", "head": [0, 1.2, 0], "tail": [0, 1.6, 0]}]}
"""

from __future__ import annotations

import argparse

from bunraku.cli.shared import let_threads_sleep, plain_warnings, progress, say_notes

HELP = "give a mesh a skeleton and skin weights"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("mesh", metavar="MESH", help="an .obj, .stl, .ply, .glb or .gltf")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the character: .glb or .gltf")
    parser.add_argument("--skeleton", metavar="FILE|TEMPLATE", help="joints placed by hand (.json, RigNet's .txt, .glb, .bvh), or a kind of body to fit")
    parser.add_argument("--influences", type=int, default=4, metavar="N", help="joints that a vertex may follow: 4 (every viewer shows them) or 8")
    parser.add_argument("--report", metavar="FILE", help="a picture (.png, .jpg) of the bones in the mesh and of whose every part of the skin is")
    parser.add_argument("--nudge", metavar="FILE", help='a .json that moves joints by name, in the mesh\'s own numbers: {"left_knee": [0.1, 0.5, 0.02]}')
    parser.add_argument("--joints", metavar="FILE", help="write the joints as a .json that can be edited and given as --skeleton")
    parser.add_argument("--unit", type=float, metavar="M", help="length of the mesh's unit in metres (default 1; .obj, .stl and .ply do not say)")
    parser.add_argument("--up", choices=("y", "z"), help="which axis of the mesh is up (default y; z for .stl)")


def run(args: argparse.Namespace) -> int:
    let_threads_sleep()
    from bunraku import api

    api.require_rig_paths(args.output, args.report, args.joints)
    with plain_warnings(), progress("rigging") as on_progress:
        character = api.rig_character(args.mesh, args.skeleton, args.influences, unit=args.unit, up=args.up, nudges=args.nudge, on_progress=on_progress)
    api.save_character(character, args.output)
    print(f"{args.output}: {len(character.mesh.vertices)} vertices follow {len(character.skeleton)} joints of '{character.skeleton.name}'")
    if args.joints:
        api.save_joints(character.skeleton, args.joints, args.mesh, unit=args.unit, up=args.up)
        print(f"{args.joints}: joints, to be edited and given as --skeleton")
    if args.report:
        api.save_rig_report(character, args.report)
        print(f"{args.report}: bones and skin weights")
    say_notes({topic: note for topic, note in character.notes.items() if topic != "outside"})  # that was a warning
    return 0
