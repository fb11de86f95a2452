"""What training draws: stretches of clips with the sentences that describe them, rare actions more often than they were captured.

Of CMU's windows 43 % walk, 3 % kick and 0.6 % crawl; a model that sees them as they come hardly learns to kick or crawl. So every action
has a factor, a window gets the geometric mean of those it names, and the factors are fitted until an action that had the share s of the
draws comes near a share in proportion to √s. No window is drawn more than MOST times as often as another for its actions, so that the
rare ones are not learnt by heart. docs/lab.md has the resulting shares.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.datasets.clip import Caption, ClipInfo, Split
from bunraku.datasets.store import Dataset

SHORTEST = 0.5  # [s]
POWER, MOST = 0.5, 16.0
ROUNDS = 60  # of fitting factors

# words, whole or by their beginning (…*), that name an action
ACTIONS: dict[str, str] = {
    "walk": "walk* stroll* pace pacing step steps stepping strut*",
    "walk backwards": "backward*",
    "run": "run runs running ran jog* sprint* dash*",
    "jump": "jump* hop hops hopping leap* skip skips skipping bounc*",
    "turn": "turn* spin* rotat* pivot* twirl* circle* clockwise counterclockwise",
    "sidestep": "sidestep* sideways shuffl*",
    "sit": "sit sits sitting seat* chair stool",
    "get up": "rises rising gets getting",
    "lie": "lie lies lying lay lays laying",
    "crouch": "crouch* squat* kneel* duck ducks ducking knee",
    "crawl": "crawl*",
    "climb": "climb* stair* ladder ledge",
    "balance": "balanc* tightrope beam tiptoe*",
    "kick": "kick*",
    "punch": "punch* box boxes boxing fight* jab* hook*",
    "throw": "throw* toss* catch* pitch* shoot* dribbl* basketball",
    "wave": "wave* waving salut* beckon*",
    "clap": "clap* applaud*",
    "point": "point* signal* direct* gestur*",
    "dance": "danc* salsa waltz ballet pirouette* jive charleston twist*",
    "flip": "flip* cartwheel* somersault* handstand* roll* handspring* backflip*",
    "stretch": "stretch* yoga exercis* bend* lean* warm*",
    "swing": "swing* golf* bat sword* swat*",
    "lift": "lift* pick* carr* grab* pull* push* drag* put puts placing place places",
    "wash": "wash* clean* wip* mop* sweep* scrub* vacuum*",
    "eat and drink": "drink* eat* sip* pour* smok*",
    "animal": "animal monkey chicken bear dog cat elephant mouse bird* snake fish whale dinosaur ape gorilla*",
    "stumble": "limp* stagger* stumbl* trip trips tripping fall falls falling drunk* injur*",
    "swim": "swim* stroke*",
    "reach": "reach* touch* scratch* rub rubs",
    "march": "march* sneak* creep* stalk*",
    "look": "look looks looking search* cough* sneez* laugh* cry* yawn* talk*",
    "stand": "stand stands standing still idle",
}
_PATTERNS = {
    action: re.compile(r"\b(?:" + "|".join(word[:-1] + r"\w*" if word.endswith("*") else word for word in words.split()) + r")\b", re.IGNORECASE)
    for action, words in ACTIONS.items()
}


@dataclass(frozen=True, kw_only=True)
class Window:
    """Frames of a clip, and all captions that describe just these."""

    clip: int
    start: int
    stop: int
    mirrored: bool  # the captions describe it with left and right swapped
    captions: tuple[Caption, ...]

    @property
    def frames(self) -> range:
        return range(self.start, self.stop)


def caption_windows(dataset: Dataset, split: Split, *, shortest: float = SHORTEST) -> list[Window]:
    """The captioned stretches of a split, each once. Those shorter than `shortest` [s] are left out."""
    windows = []
    for clip in dataset.of_split(split):
        together: dict[tuple[int, int, bool], list[Caption]] = defaultdict(list)
        for caption in dataset.clips[clip].captions:
            if caption.stop - caption.start >= shortest * dataset.fps:
                together[caption.start, caption.stop, caption.mirrored].append(caption)
        windows += [Window(clip=clip, start=a, stop=b, mirrored=m, captions=tuple(captions)) for (a, b, m), captions in together.items()]
    return windows


def actions_of(window: Window, clip: ClipInfo) -> tuple[str, ...]:
    """The actions that a window's sentences name, or else its source's category; `other` where neither names one that is known."""
    said = " ".join(caption.text for caption in window.captions)
    found = tuple(action for action, pattern in _PATTERNS.items() if pattern.search(said))
    if found:
        return found
    named = tuple(action for action, pattern in _PATTERNS.items() if pattern.search(clip.category))
    return named or ("other",)


def sampling_weights(dataset: Dataset, windows: Sequence[Window], *, power: float = POWER, most: float = MOST) -> Float[Tensor, " W"]:
    """How often to draw each window, with mean 1: rare actions more, windows with nothing but labels less.

    `power` 0 draws windows as they come, 1 all actions alike; no window is drawn more than `most` times as often as another for its action.
    """
    if not windows:
        return torch.zeros(0)
    base = torch.tensor([max(caption.weight for caption in window.captions) for window in windows])
    named = [actions_of(window, dataset.clips[window.clip]) for window in windows]
    actions = {action: row for row, action in enumerate(sorted({action for row in named for action in row}))}
    names = torch.zeros(len(windows), len(actions))
    for row, found in enumerate(named):
        names[row, [actions[action] for action in found]] = 1.0
    weights = base * _balanced(names, base, power, most)
    return weights / weights.mean()


def _balanced(names: Float[Tensor, "W A"], base: Float[Tensor, " W"], power: float, most: float) -> Float[Tensor, " W"]:
    """A factor for each window, from 1 / √most to √most: the geometric mean of those of the actions it names."""

    def of_windows(log_factor: Float[Tensor, " A"]) -> Float[Tensor, " W"]:
        return torch.exp(names @ log_factor / names.sum(dim=1))

    wanted = (names.T @ base / base.sum()) ** (1 - power)
    log_factor, limit = torch.zeros(names.shape[1]), math.log(most) / 2
    for _ in range(ROUNDS):
        share = names.T @ (base * of_windows(log_factor))
        log_factor = (log_factor + 0.5 * ((wanted / wanted.sum()) / (share / share.sum())).log()).clamp(-limit, limit)
    return of_windows(log_factor)


def action_shares(dataset: Dataset, windows: Sequence[Window], weights: Float[Tensor, " W"]) -> dict[str, float]:
    """Which share of the draws names each action, the most frequent first; a window may name several."""
    shares: dict[str, float] = defaultdict(float)
    for weight, window in zip((weights / weights.sum().clamp_min(1e-12)).tolist(), windows, strict=True):
        for action in actions_of(window, dataset.clips[window.clip]):
            shares[action] += weight
    return dict(sorted(shares.items(), key=lambda item: -item[1]))
