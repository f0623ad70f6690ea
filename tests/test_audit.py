"""The audit of requirements.lock."""

import json
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import audit
import pytest

LOCK = """\
good==1.0 \\
    --hash=sha256:aa
bare==2.0
elsewhere==1.0 @ https://example.com/elsewhere.whl \\
    --hash=sha256:bb
"""


def advisory(name: str, **affected: Any) -> dict[str, Any]:
    return {"id": "A-1", "affected": [{"package": {"ecosystem": "PyPI", "name": name}, **affected}]}


def test_every_package_of_the_lock_has_hashes_and_a_known_licence_that_is_not_refused():
    lock = audit.LOCK.read_text()
    licences = tomllib.loads(audit.TABLE.read_text())["licences"]
    names = audit.releases_of(lock)
    assert len(names) > 100
    assert list(audit.unpinned(lock)) == []
    assert list(audit.unlicensed(names, licences, lambda name: None)) == []
    assert {name for some in licences.values() for name in some} == set(names)


def test_a_release_without_a_hash_or_with_an_address_is_found():
    assert [line.split(":")[0] for line in audit.unpinned(LOCK)] == ["bare", "elsewhere"]


def test_a_licence_that_is_new_changed_or_refused_is_found():
    listed = {"MIT": ["same", "changed"], "GPL-3.0": ["refused"], "LGPL-2.1": ["lesser"]}
    installed = {"same": "MIT", "changed": "BSD"}
    names = ["same", "changed", "refused", "lesser", "new"]
    found = [line.split(":")[0] for line in audit.unlicensed(names, listed, installed.get)]
    assert found == ["changed", "new", "refused"]


def events(*pairs: dict[str, str]) -> dict[str, Any]:
    return {"ranges": [{"type": "ECOSYSTEM", "events": list(pairs)}]}


@pytest.mark.parametrize(
    ("one", "hit"),
    {
        "a version": (advisory("Some_Package", versions=["1.5"]), True),
        "another version": (advisory("some-package", versions=["1.4"]), False),
        "a range": (
            advisory("some-package", **events({"introduced": "0"}, {"fixed": "2.0"})), True,
        ),
        "a fixed range": (
            advisory("some-package", **events({"introduced": "0"}, {"fixed": "1.5"})), False,
        ),
        "a later range": (advisory("some-package", **events({"introduced": "1.6"})), False),
        "the last affected": (
            advisory("some-package", **events({"introduced": "1.0"}, {"last_affected": "1.5"})),
            True,
        ),
        "after the last affected": (
            advisory("some-package", **events({"introduced": "1.0"}, {"last_affected": "1.4"})),
            False,
        ),
        "another package": (advisory("other", versions=["1.5"]), False),
        "withdrawn": (
            {**advisory("some-package", versions=["1.5"]), "withdrawn": "2026-01-01T00:00:00Z"},
            False,
        ),
    }.values(),
)  # fmt: skip
def test_an_advisory_is_about_the_releases_that_it_names(one, hit):
    found = list(audit.affected({"some-package": {"1.5"}}, [one]))
    assert [name for name, _ in found] == (["A-1"] if hit else [])


def test_advisories_come_from_a_folder_or_a_zip_file(tmp_path: Path, monkeypatch, capsys):
    name, (version,) = next(
        one for one in audit.releases_of(audit.LOCK.read_text()).items() if len(one[1]) == 1
    )
    monkeypatch.setattr(audit, "unlicensed", lambda *_: [])
    text = json.dumps(advisory(name, versions=[version]))
    folder, packed = tmp_path / "advisories", tmp_path / "all.zip"
    folder.mkdir()
    (folder / "A-1.json").write_text(text)
    with zipfile.ZipFile(packed, "w") as content:
        content.writestr("A-1.json", text)
    for source in (folder, packed):
        assert audit.main(["--advisories", str(source)]) == 1
        assert f"{name} {version}: A-1" in capsys.readouterr().out
    assert audit.main([]) == 0
