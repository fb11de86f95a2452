"""A textured mesh to splats: seeded in closed form, then fitted to pictures of it from all around.

```
 mesh ─► ball of radius 1 ─► seed_splats ─► fit_splats ─► back to metres
                        └─► random_views, draw_mesh ─┘
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.geometry.appearance import appearance_of
from bunraku.geometry.mesh import Mesh
from bunraku.rig.character import Character
from bunraku.splats.fit import ITERATIONS, FitSettings, fit_splats
from bunraku.splats.seed import COUNT, seed_splats, spacing_of
from bunraku.splats.splats import Splats
from bunraku.splats.views import draw_mesh, random_views

VIEWS = 200
_PIXELS = 256  # the side of a view
_CLOSEST = 2.0  # half of the views are so much larger at most, so that splats look right in larger pictures, too
_MOST_VIEWS = 10_000
_DRAWING = 0.4  # of the time goes into the views, by default


def from_mesh(
    body: Character | Mesh,
    views: int = VIEWS,
    count: int = COUNT,
    iterations: int = ITERATIONS,
    seed: int = 0,
    on_progress: Callable[[float], None] | None = None,
) -> Splats:
    """At most `count` splats that look like the mesh in its rest pose. The same seed gives the same splats.

    `views=0` is the closed form alone: a second instead of half a minute. `on_progress` hears the share that is done.
    """
    if not 0 <= views <= _MOST_VIEWS:
        raise BadValue(f"splats cannot be fitted to {views} views; ask for 1 to {_MOST_VIEWS:,}, such as {VIEWS}, or for 0: no fitting.")
    settings = FitSettings(iterations=iterations, seed=seed)
    mesh = body.mesh if isinstance(body, Character) else body
    middle, radius = _ball(_seen(mesh))
    unit = replace(mesh, vertices=((mesh.vertices.detach().double().cpu() - middle) / radius).float())
    appearance = appearance_of(unit)
    splats = seed_splats(unit, appearance, count, seed)
    if views and iterations:
        tell = on_progress or (lambda share: None)
        cameras = random_views(_seen(unit), views, seed, _PIXELS, _CLOSEST)
        targets = []
        for number in range(views):
            targets.append(draw_mesh(unit.vertices, appearance, cameras[number]))
            tell(_DRAWING * len(targets) / views)
        splats = fit_splats(splats, spacing_of(unit, count), cameras, targets, settings, lambda share: tell(_DRAWING + (1 - _DRAWING) * share))
    return replace(splats, means=(splats.means.double() * radius + middle).float(), factors=(splats.factors.double() * radius).float())


def _seen(mesh: Mesh) -> Float[Tensor, "U 3"]:
    """The vertices that have faces: others may lie anywhere."""
    if not len(mesh.faces):
        raise BadValue("the mesh has no faces, so there is no surface to cover with splats; give a mesh with triangles.")
    return mesh.vertices.detach().cpu()[mesh.faces.cpu().flatten().unique()]


def _ball(vertices: Float[Tensor, "U 3"]) -> tuple[Float[Tensor, "3"], float]:
    """Where the mesh is and how large [m]; whatever its unit, splats are made and fitted at one size, where nothing is too near or too fine."""
    places = vertices.double()
    middle = (places.amin(0) + places.amax(0)) / 2
    radius = float((places - middle).norm(dim=1).max())
    if not radius > 0:
        raise BadValue("all faces of the mesh lie in one point, so there is no surface to cover with splats; give a mesh with area.")
    return middle, radius
