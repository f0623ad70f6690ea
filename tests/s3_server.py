"""A server on 127.0.0.1 that speaks the protocol of S3 and counts its requests.

Run as a program it takes its port, and answers S3 and the path ``/requests`` with the number of
requests so far by method, as JSON.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ports import free_port


@contextmanager
def serving() -> Iterator[str]:
    """Start a server that holds nothing yet, and yield its address."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, __file__, str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            try:
                requests(address)
                break
            except OSError:
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(10)


def requests(address: str) -> Counter[str]:
    """Return how many requests of each method the server was sent; this one does not count."""
    with urllib.request.urlopen(f"{address}/requests") as answer:
        return Counter(json.load(answer))


def settings(address: str, home: Path) -> dict[str, str]:
    """Return the environment in which a command finds the server, and no other."""
    return {
        "AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1", "HOME": str(home),
    }  # fmt: skip


def _counting(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    counts: Counter[str] = Counter()

    def counted(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/requests":
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(counts).encode()]
        counts[environ["REQUEST_METHOD"]] += 1
        return app(environ, start_response)

    return counted


def _serve(port: int) -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    app = DomainDispatcherApplication(create_backend_app)
    run_simple("127.0.0.1", port, _counting(app), threaded=True)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
