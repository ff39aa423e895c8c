"""Servers of stores on this machine: HTTP, and S3 by moto."""

import functools
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class WebServer(http.server.ThreadingHTTPServer):
    """Files of a folder over HTTP; `answer`, if set, may answer a request itself, and says so.

    Attributes
    ----------
    requests : list of (method, path)
        What was asked for.
    """

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        self.answer: Callable[[Any], bool] = lambda _request: False
        self.requests: list[tuple[str, str]] = []
        super().__init__(("127.0.0.1", 0), functools.partial(_Request, directory=str(folder)))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that are gone."""


class _Request(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: WebServer

    def do_GET(self) -> None:
        self.server.requests.append((self.command, self.path))
        if not self.server.answer(self):
            super().do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def web_server(folder: Path) -> Iterator[WebServer]:
    with WebServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def refusing(port: int) -> Iterator[None]:
    """Connections to a port that is free are refused: no other server of this machine can take it."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))  # and never listens
        yield


@contextmanager
def s3_server() -> Iterator[str]:
    """The URL of an S3 service of moto, empty at first."""
    from moto.moto_api._internal import moto_api_backend
    from moto.server import ThreadedMotoServer

    moto_api_backend.reset()  # what its servers keep belongs to the process, not to one of them

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
