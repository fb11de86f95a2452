"""Embeddings over HTTP, from a server in this process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from text_samples import CountingEncoder

from bunraku.errors import BadValue, BunrakuError, FileProblem, FormatProblem
from bunraku.generator.text.service import TextService

Answer = Callable[[list[str]], tuple[int, bytes]]


class Server:
    """Answers POST by `answer`, which a test may exchange; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.answer: Answer = honest
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["texts"]
                outer.asked.append(texts)
                status, body = outer.answer(texts)
                with suppress(BrokenPipeError, ConnectionResetError):  # a client that waits no longer
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=lambda: self._server.serve_forever(poll_interval=0.01), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def honest(texts: list[str]) -> tuple[int, bytes]:
    made = [{"pooled": e.pooled.tolist(), "tokens": e.tokens.tolist()} for e in CountingEncoder().embed(texts)]
    return 200, json.dumps({"encoder": "counting-1", "width": 6, "embeddings": made}).encode()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = Server()
    yield made
    made.close()


def test_a_service_gives_what_its_encoder_gives(server: Server) -> None:
    texts = ["a person walks", "", "wavës", "a person walks"]
    service = TextService(server.url)
    ours, theirs = service.encode(texts), CountingEncoder().encode(texts)
    torch.testing.assert_close(ours.tokens, theirs.tokens)
    torch.testing.assert_close(ours.pooled, theirs.pooled)
    assert (service.name, service.width) == ("counting-1", 6)
    assert server.asked == [["a person walks", "wavës"], []]


def test_many_texts_are_asked_in_parts(server: Server) -> None:
    features = TextService(server.url).encode([f"walks {i}" for i in range(150)])
    assert [len(asked) for asked in server.asked if asked] == [64, 64, 22]
    torch.testing.assert_close(features.pooled[149], CountingEncoder().encode(["walks 149"]).pooled[0])


def test_vectors_alone_stand_as_the_one_token(server: Server) -> None:
    server.answer = lambda texts: (200, json.dumps({"encoder": "v", "width": 2, "embeddings": [{"pooled": [1, 2]} for _ in texts]}).encode())
    assert TextService(server.url).encode(["walks"]).tokens.tolist() == [[[1.0, 2.0]]]


def says(**changed: object) -> Answer:
    return lambda texts: (200, json.dumps({"encoder": "e", "width": 2, "embeddings": [{"pooled": [1.0, 2.0]} for _ in texts]} | changed).encode())


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (lambda texts: (503, b"busy"), FileProblem, "refused 1 texts: 503"),
        (lambda texts: (200, b"<html>"), FormatProblem, "did not answer with JSON"),
        (lambda texts: (200, b"[]"), FormatProblem, "answered with a list; a JSON object"),
        (says(embeddings=[]), FormatProblem, "asked for 1 embeddings and gave 0 of them"),
        (says(embeddings=None), FormatProblem, "asked for 1 embeddings and gave none"),
        (says(width=3), FormatProblem, "not one list of 3 numbers"),
        (says(width="2"), FormatProblem, 'does not say its "encoder" and "width"'),
        (says(encoder=None), FormatProblem, 'does not say its "encoder" and "width"'),
        (says(embeddings=[{"pooled": [1, None]}]), FormatProblem, "not one list of 2 numbers"),
        (says(embeddings=["x"]), FormatProblem, "not one list of 2 numbers"),
        (says(embeddings=[{"pooled": [1, 2], "tokens": [[1], [2]]}]), FormatProblem, "not a list of lists of 2 numbers"),
        (says(embeddings=[{"pooled": [1, float("nan")]}]), BadValue, "not finite"),
    ],
)
def test_services_that_misbehave(server: Server, answer: Answer, kind: type[BunrakuError], said: str) -> None:
    server.answer = answer
    with pytest.raises(kind, match=said):
        TextService(server.url).encode(["walks"])


def test_a_service_that_is_slow(server: Server) -> None:
    def slow(texts: list[str]) -> tuple[int, bytes]:
        time.sleep(0.5)
        return honest(texts)

    server.answer = slow
    with pytest.raises(FileProblem, match=r"did not answer within 0\.1 s"):
        TextService(server.url, timeout=0.1).encode(["walks"])


def test_a_service_that_is_not_there(server: Server) -> None:
    server.close()
    with pytest.raises(FileProblem, match=r"cannot be reached .* see whether it is running"):
        TextService(server.url).encode(["walks"])


def test_bad_addresses() -> None:
    with pytest.raises(BadValue, match="got 'file:///etc/passwd'"):
        TextService("file:///etc/passwd")
    with pytest.raises(BadValue, match="positive number of seconds; got 0"):
        TextService("http://localhost/", timeout=0)
