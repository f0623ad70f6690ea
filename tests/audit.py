"""Audits requirements.lock without a network: ``make audit``.

Each locked release has hashes and no address. Each package has the licence that ``audit.toml``
names: the metadata of installed packages must agree, and no licence may forbid to ship logtool.
With `--update` the list is written again. With `--advisories`, a folder or a zip file of advisories
in the format of OSV that was downloaded before, no locked release may be affected by one, unless
``audit.toml`` accepts it with a reason.
"""

import argparse
import json
import sys
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import locked
from packaging.version import Version

LOCK = locked.ROOT / "requirements.lock"
TABLE = Path(__file__).with_suffix(".toml")
_REFUSED = ("GPL", "AFFERO", "GENERAL PUBLIC", "COMMERCIAL", "PROPRIETARY", "UNKNOWN")
_LESSER = ("LGPL", "LESSER")


def unpinned(lock: str) -> Iterator[str]:
    """Yield a line for each release of a lock that has no hash, or an address."""
    for one in locked.parse(lock):
        text = "".join(one.lines)
        if "--hash=sha256:" not in text or "://" in text:
            yield f"{one.name}: no hash, or an address in the place of a release"


def licence_of(name: str) -> str | None:
    """Return the licence in the metadata of a package; None if it is not installed here."""
    try:
        found: Any = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    words = [
        one.split(" :: ")[-1] for one in found.get_all("Classifier") or [] if "License ::" in one
    ]
    text = found.get("License-Expression") or "; ".join(words) or found.get("License") or "unknown"
    return str(text).splitlines()[0]


def unlicensed(
    names: Iterable[str],
    listed: dict[str, list[str]],
    installed: Callable[[str], str | None] = licence_of,
) -> Iterator[str]:
    """Yield a line for each package whose licence is not known, has changed, or is refused."""
    licences = {name: licence for licence, some in listed.items() for name in some}
    for name in sorted(names):
        licence, found = licences.get(name), installed(name)
        if licence is None:
            yield f"{name}: not in {TABLE.name}; make audit AUDIT_ARGS=--update adds it"
        elif found not in (None, licence):
            yield f"{name}: the licence {licence!r} is now {found!r}"
        elif is_refused(licence):
            yield f"{name}: the licence {licence!r} does not go with that of logtool"


def is_refused(licence: str) -> bool:
    """Return whether a licence forbids to ship logtool with the package."""
    text = licence.upper()
    return any(word in text for word in _REFUSED) and not any(word in text for word in _LESSER)


def affected(
    releases: dict[str, set[str]], advisories: Iterable[dict[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield the id of each advisory that is about a locked release, and that release."""
    for advisory in advisories:
        for one in advisory.get("affected", ()) if "withdrawn" not in advisory else ():
            package = one.get("package", {})
            if package.get("ecosystem") == "PyPI":
                for version in releases.get(locked.normal(package["name"]), ()):
                    if version in one.get("versions", ()) or any(
                        _in(version, each) for each in one.get("ranges", ())
                    ):
                        yield advisory["id"], f"{package['name']} {version}"


def _in(version: str, affected_range: dict[str, Any]) -> bool:
    inside = False
    for event in (
        affected_range.get("events", ()) if affected_range.get("type") == "ECOSYSTEM" else ()
    ):
        kind, bound = next(iter(event.items()))
        reached = bound == "0" or Version(version) >= Version(bound)
        if kind == "last_affected":
            inside = inside and Version(version) <= Version(bound)
        elif reached:
            inside = kind == "introduced"
    return inside


def read(source: Path) -> Iterator[dict[str, Any]]:
    """Yield the advisories of a folder or of a zip file."""
    if source.is_dir():
        yield from (json.loads(path.read_bytes()) for path in sorted(source.rglob("*.json")))
        return
    with zipfile.ZipFile(source) as content:
        yield from (json.loads(content.read(name)) for name in sorted(content.namelist()))


def releases_of(lock: str) -> dict[str, set[str]]:
    """Return the locked releases by package."""
    found: dict[str, set[str]] = defaultdict(set)
    for one in locked.parse(lock):
        found[one.name].add(one.lines[0].split("==")[1].split()[0])
    return found


def update(names: Iterable[str], table: dict[str, Any]) -> str:
    """Return the table with the licences of installed packages, and the old ones of the others."""
    old = {name: licence for licence, some in table["licences"].items() for name in some}
    listed = defaultdict(list)
    for name in sorted(names):
        listed[licence_of(name) or old.get(name, "unknown")].append(name)
    accepted = [f"{json.dumps(one)} = {json.dumps(why)}" for one, why in table["accepted"].items()]
    lines = [f"{json.dumps(key)} = {json.dumps(some)}" for key, some in sorted(listed.items())]
    return "\n".join(["[accepted]", *accepted, "", "[licences]", *lines, ""])


def main(arguments: list[str]) -> int:
    """Print what is wrong with the lock; the exit status is 1 if something is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--advisories", type=Path, metavar="PATH")
    parser.add_argument("--update", action="store_true")
    given = parser.parse_args(arguments)
    lock, table = LOCK.read_text(), tomllib.loads(TABLE.read_text())
    releases = releases_of(lock)
    if given.update:
        TABLE.write_text(update(releases, table))
        return 0
    wrong = [*unpinned(lock), *unlicensed(releases, table["licences"])]
    if given.advisories:
        found = set(affected(releases, read(given.advisories)))
        wrong += [f"{what}: {one}" for one, what in sorted(found) if one not in table["accepted"]]
    print(*wrong, f"{len(releases)} packages, {len(wrong)} wrong", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
