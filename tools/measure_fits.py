"""How far fitted joints are from where artists put them: a table for a folder of rigged characters, and a sheet of each if wanted.

    python tools/measure_fits.py ../shared/data/rigged_assets [--template biped] [--sheets FOLDER] [NAME …]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from bunraku import load_character
from bunraku.errors import BunrakuError
from bunraku.geometry.mesh import Mesh
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.skeleton import ROLES, Skeleton
from bunraku.picture.fit_sheet import fit_sheet
from bunraku.rig.fit import fit_skeleton
from bunraku.rig.fit.inside import solid

MAIN = [role for role in ROLES if not role.endswith(("collar", "toe"))]
SHARES_FROM = {"Man_CasualHoodie", "Mannequin_F", "KayKit_Knight", "Astronaut_FinnTheFrog", "Mech_George", "Fox", "Horse", "Pug", "Apatosaurus", "Velociraptor"}


def misses(fitted: Skeleton, artist: Skeleton, height: float) -> dict[str, float]:
    """By role, in % of the body's height."""
    here, there = rest_poses(fitted).p_world_joint, rest_poses(artist).p_world_joint
    shared = [role for role in MAIN if fitted.has(role) and artist.has(role)]
    return {role: 100 * float((here[fitted.role(role)] - there[artist.role(role)]).norm()) / height for role in shared}


def within(mesh: Mesh, artist: Skeleton) -> set[str]:
    """The roles whose joints the artist put inside the body; handles above its back are not."""
    volume = solid(mesh.vertices.double().numpy(), mesh.faces.numpy())
    away = torch.cdist(rest_poses(artist).p_world_joint.double(), torch.as_tensor(volume.points)).amin(1)
    return {role for role in MAIN if artist.has(role) and float(away[artist.role(role)]) <= volume.cell}


def average(errors: dict[str, float]) -> str:
    return f"{sum(errors.values()) / len(errors):.1f}" if errors else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--template")
    parser.add_argument("--sheets", type=Path)
    given = parser.parse_intermixed_args()
    print("| asset | template | sure | mean % | of joints inside the body | worst | s |\n|---|---|---|---|---|---|---|")
    for path in sorted(given.folder.rglob("*.glb")):
        if given.names and path.stem not in given.names:
            continue
        character = load_character(path)
        mesh, start = character.mesh, time.process_time()
        try:
            fit = fit_skeleton(mesh, given.template)
        except BunrakuError as problem:
            print(f"| {path.stem} | {problem} | | | | | |")
            continue
        seconds = time.process_time() - start
        errors = misses(fit.skeleton, character.skeleton, float(mesh.vertices[:, 1].max() - mesh.vertices[:, 1].min()))
        worst = max(errors, key=errors.__getitem__, default="")
        most = f"{worst} {errors[worst]:.0f}" if errors else "–"
        inside = within(mesh, character.skeleton)
        means = f"{average(errors)} | {average({role: error for role, error in errors.items() if role in inside})}"
        star = " *" if path.stem in SHARES_FROM else ""
        print(f"| {path.stem}{star} | {fit.template} | {fit.confidence:.2f} | {means} | {most} | {seconds:.1f} |", flush=True)
        if given.sheets is not None:
            given.sheets.mkdir(parents=True, exist_ok=True)
            rest = rest_poses(character.skeleton).p_world_joint.double().numpy()
            marks = rest[[character.skeleton.role(role) for role in MAIN if character.skeleton.has(role)]]
            fit_sheet(mesh, fit.skeleton, title=path.stem, notes=fit.notes, marks=marks).save(given.sheets / f"{path.stem}.png")


if __name__ == "__main__":
    main()
