"""A metadata log with secrets that a broker wrote, and where these stand in what was made of it.

``metadata_secrets.txt`` has the batches of ``__cluster_metadata-0``, a line of hex for each, of a
broker of Kafka 4.3.1 on a new log dir. Its admin gave alice SCRAM credentials of both mechanisms
with the password and the salt below, and set two passwords of broker 1 and ``background.threads``.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path

from logtool.metadata.image import DIRECTORY

_PASSWORD, _SALT, _ITERATIONS = b"open sesame", b"salt of alice", 4096
_SETTING = b"keystore of broker 1"


def _keys(algorithm: str) -> tuple[bytes, bytes]:
    """Return StoredKey and ServerKey, as RFC 5802 derives them."""
    salted = hashlib.pbkdf2_hmac(algorithm, _PASSWORD, _SALT, _ITERATIONS)
    client = hmac.digest(salted, b"Client Key", algorithm)
    return hashlib.new(algorithm, client).digest(), hmac.digest(salted, b"Server Key", algorithm)


SECRETS = (_SALT, *_keys("sha256"), *_keys("sha512"), _SETTING)


def write(home: Path) -> Path:
    """Write the log into a log dir; returns its ``.log``."""
    lines = Path(__file__).with_suffix(".txt").read_text().split()
    (home / DIRECTORY).mkdir(parents=True)
    log = home / DIRECTORY / f"{0:020d}.log"
    log.write_bytes(b"".join(map(bytes.fromhex, lines)))
    return log


def spelled(data: bytes, secrets: Iterable[bytes] = SECRETS) -> list[bytes]:
    """Return which of the secrets stand in what was printed, in any way to print bytes."""
    found = []
    for secret in secrets:
        ways = [secret, secret.hex().encode()]
        # What is before it in a record decides how its base64 begins and ends.
        ways += [base64.b64encode(bytes(lead) + secret)[4:-4] for lead in range(3)]
        found += [secret] if any(way in data for way in ways) else []
    return found
