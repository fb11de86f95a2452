"""Embeddings from an HTTP service: one machine with a large encoder serves many without.

The service answers POST with JSON, and an empty list of texts with nothing but its name and width:

    → {"texts": ["A person walks.", …]}
    ← {"encoder": "llm2vec-1b2c", "width": 4096, "embeddings": [{"pooled": [4096 numbers], "tokens": [[4096 numbers], …]}, …]}

"tokens" may be left out: the vector then stands as the one token. `encoder` must change when the weights do: the cache trusts it.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import BadValue, FileProblem, FormatProblem
from bunraku.generator.text.encoder import TextEmbedding, TextEncoder

_TEXTS_AT_ONCE = 64
_MAX_BYTES = 1 << 30


@final
class TextService(TextEncoder):
    """The encoder behind a URL. It is asked for its name and width when these are first needed."""

    def __init__(self, url: str, *, timeout: float = 60.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadValue(f"a text service has an address such as http://host:9550/; got '{url}'.")
        if not timeout > 0:
            raise BadValue(f"the time to wait for a text service is a positive number of seconds; got {timeout}.")
        self._url, self._timeout = url, timeout

    @property
    def name(self) -> str:
        return self._greeting[0]

    @property
    def width(self) -> int:
        return self._greeting[1]

    def embed(self, texts: Sequence[str]) -> list[TextEmbedding]:
        found: list[TextEmbedding] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            asked = list(texts[start : start + _TEXTS_AT_ONCE])
            given = self._ask(asked).get("embeddings")
            if not isinstance(given, list) or len(given) != len(asked):
                count = f"{len(given)} of them" if isinstance(given, list) else "none"
                raise FormatProblem(f"the text service {self._url} was asked for {len(asked)} embeddings and gave {count}; one a text, in order, is needed.")
            found += map(self._embedding, given)
        return found

    @cached_property
    def _greeting(self) -> tuple[str, int]:
        answer = self._ask([])
        name, width = answer.get("encoder"), answer.get("width")
        if not isinstance(name, str) or not name or not isinstance(width, int) or width < 1:
            raise FormatProblem(f'the text service {self._url} does not say its "encoder" and "width" (got {name!r} and {width!r}).')
        return name, width

    def _embedding(self, given: Any) -> TextEmbedding:
        pooled = self._numbers(given.get("pooled") if isinstance(given, dict) else None, 1)
        tokens = self._numbers(given["tokens"], 2) if given.get("tokens") is not None else pooled[None]
        return TextEmbedding(tokens=tokens, pooled=pooled)

    def _numbers(self, values: Any, dimensions: int) -> Float[Tensor, "..."]:
        try:
            numbers = torch.tensor(values, dtype=torch.float32)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            numbers = torch.zeros(0)
        if numbers.ndim != dimensions or numbers.shape[-1] != self.width:
            shape = "one list" if dimensions == 1 else "a list of lists"
            raise FormatProblem(f"the text service {self._url} gave an embedding that is not {shape} of {self.width} numbers, the width it states.")
        return numbers

    def _ask(self, texts: list[str]) -> dict[str, Any]:
        request = urllib.request.Request(self._url, data=json.dumps({"texts": texts}).encode(), headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                data = response.read(_MAX_BYTES + 1)
        except urllib.error.HTTPError as error:
            raise FileProblem(f"the text service {self._url} refused {len(texts)} texts: {error.code} {error.reason}; see the service's own log.") from error
        except TimeoutError as error:
            raise FileProblem(f"the text service {self._url} did not answer within {self._timeout:g} s; see whether it is busy, or wait longer.") from error
        except (OSError, ValueError, urllib.error.URLError) as error:
            if isinstance(getattr(error, "reason", None), TimeoutError):
                raise FileProblem(f"the text service {self._url} did not answer within {self._timeout:g} s; see whether it is running.") from error
            raise FileProblem(f"the text service {self._url} cannot be reached ({getattr(error, 'reason', error)}); see whether it is running.") from error
        if len(data) > _MAX_BYTES:
            raise FormatProblem(f"the text service {self._url} answered with more than {_MAX_BYTES >> 30} GiB; that is no set of embeddings.")
        try:
            answer = json.loads(data)
        except ValueError as error:
            raise FormatProblem(f"the text service {self._url} did not answer with JSON; is it a service for embeddings?") from error
        if not isinstance(answer, dict):
            raise FormatProblem(f"the text service {self._url} answered with a {type(answer).__name__}; a JSON object is needed.")
        return answer
