"""What the heat solver found and repaired: numbers, and a line for each that a user should know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HeatReport:
    vertices: int
    bones: int
    shells: int  # pieces that share no point
    repeated: int  # vertices on the spot of another one: seams, or doubles
    flat_faces: int
    doubled_faces: int
    turned_faces: int  # listed the other way round than their neighbours, or inside out
    unsolved: int  # points too thin for double precision
    loose: int  # points that belong to no face
    warmed: int  # points that take heat from a bone
    carried_shells: int  # shells that hold no bone and follow the skin next to them
    boneless: bool  # no shell holds a bone: each follows its nearest one
    idle_bones: tuple[int, ...]  # bones that are nowhere the strongest

    @property
    def lines(self) -> tuple[str, ...]:
        """One sentence for each thing that was repaired or deserves a look; none for a clean mesh."""
        said = {
            f"{self.repeated} vertices lie on the spot of another one and were welded for the solve": self.repeated,
            f"{self.flat_faces} faces have no area and were left out of the solve": self.flat_faces,
            f"{self.doubled_faces} faces repeat another one and were counted once": self.doubled_faces,
            f"{self.turned_faces} faces looked inwards and were turned for the solve": self.turned_faces,
            f"{self.unsolved} points are too thin for the solver and follow their nearest bone": self.unsolved,
            f"{self.loose} points belong to no face and follow the nearest skin": self.loose,
            f"{self.carried_shells} of {self.shells} pieces hold no bone and follow the skin next to them": self.carried_shells,
            "no piece of the mesh holds a bone, so each follows the bone nearest to it; is the skeleton inside the mesh?": self.boneless,
        }
        return tuple(line for line, count in said.items() if count)
