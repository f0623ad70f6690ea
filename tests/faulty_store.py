"""A proxy in front of an S3 server, behind which listings say what is not so."""

import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import s3fs
from s3_server import settings

_OF_CONNECTION = {"host", "connection", "content-length", "transfer-encoding", "keep-alive"}


@dataclass
class Faults:
    """The faults of the proxy `faulty`, by the names of objects."""

    gone: set[str] = field(default_factory=set)
    """Objects that are listed and are not there when they are read."""
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Status and code of S3 that objects get in place of an answer, by the end of their names."""
    times: dict[str, int] = field(default_factory=dict)
    """Number of requests that are refused, by a name of `refused`; without one, all are."""
    dropped: set[str] = field(default_factory=set)
    """Ends of names of objects for which the connection is closed without an answer."""
    hits: int = 0
    """Requests that were refused or dropped."""
    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    """Functions that are called before the first answer about an object, by the end of its name."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Sizes of objects that listings give in place of the right ones."""

    def is_gone(self, path: str) -> bool:
        """Return whether a request for an object is to fail."""
        return any(path.endswith(f"/{name}") for name in self.gone)

    def act(self, path: str) -> None:
        """Do what is to be done before the first answer about an object."""
        for name in [name for name in self.before if path.endswith(name)]:
            self.before.pop(name)()

    def refusal(self, path: str) -> tuple[int, str] | None:
        """Return the status and code with which a request for an object is refused."""
        for name, answer in self.refused.items():
            if path.endswith(name) and self.times.get(name, 1) > 0:
                if name in self.times:
                    self.times[name] -= 1
                return answer
        return None

    def listed(self, body: bytes) -> bytes:
        """Return a listing with other sizes in it."""
        for name, size in self.sizes.items():
            entry = rb"(<Key>[^<]*/" + re.escape(name.encode()) + rb"</Key>.*?<Size>)\d+"
            body = re.sub(entry, rb"\g<1>%d" % size, body, flags=re.DOTALL)
        return body


@contextmanager
def faulty(address: str, faults: Faults) -> Iterator[str]:
    """Start a proxy in front of a server of `s3_server.serving`, and yield its address."""

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if any(urllib.parse.unquote(path).endswith(name) for name in faults.dropped):
                faults.hits += 1
                self.close_connection = True
                return
            if faults.is_gone(urllib.parse.unquote(path)):
                gone = b"<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>"
                self.reply(404, {"Content-Type": "application/xml"}, gone)
                return
            if refusal := faults.refusal(urllib.parse.unquote(path)):
                faults.hits += 1
                status, code = refusal
                text = f"<Error><Code>{code}</Code><Message>go away</Message></Error>"
                self.reply(status, {"Content-Type": "application/xml"}, text.encode())
                return
            faults.act(urllib.parse.unquote(path))
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _OF_CONNECTION}
            request = urllib.request.Request(
                address + self.path, sent or None, headers, method=self.command
            )
            try:
                with urllib.request.urlopen(request) as response:
                    status, kept, body = response.status, response.headers, response.read()
            except urllib.error.HTTPError as error:
                with error:
                    status, kept, body = error.code, error.headers, error.read()
            body = faults.listed(body) if "list-type" in query else body
            self.reply(status, dict(kept.items()), body)

        def reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            head = self.command == "HEAD"
            for name, value in headers.items():
                is_size = head and name.lower() == "content-length"
                if is_size or name.lower() not in _OF_CONNECTION:
                    self.send_header(name, value)
            if not head:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if not head:
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def faulty_client(server: str, home: Path, patch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """Let clients of S3 in this process use a proxy in front of a server; yield its faults."""
    found = Faults()
    with faulty(server, found) as between:
        for name, value in settings(between, home).items():
            patch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        patch.setattr(s3fs.S3FileSystem, "retries", 1)
        yield found
        s3fs.S3FileSystem.clear_instance_cache()
