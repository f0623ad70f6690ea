"""The inputs of the benchmark are sound."""

from pathlib import Path

import pytest
from bench.generate import KIB, MIB, Spec, generate

from logtool.verify import Level, Verification


@pytest.mark.parametrize(
    "spec",
    [
        Spec(200, MIB),
        Spec(16 * KIB, MIB, segment_size=256 * KIB, producers=3),
        Spec(16 * KIB, MIB, codec=4, producers=0),
        Spec(MIB, MIB),
        Spec(KIB, 20 * KIB, segment_size=KIB),
    ],
    ids=lambda spec: spec.name,
)
def test_a_generated_directory_is_sound_down_to_its_records(spec: Spec, tmp_path: Path) -> None:
    directory = generate(tmp_path, spec)
    verification = Verification([directory], level=Level.RECORDS)
    assert list(verification) == []
    assert 0.9 < verification.summary.bytes / spec.total_size <= 1


def test_it_is_written_once_and_always_the_same(tmp_path: Path) -> None:
    spec = Spec(KIB, 64 * KIB)
    one, two = generate(tmp_path / "a", spec), generate(tmp_path / "b", spec)
    contents = [{file.name: file.read_bytes() for file in home.iterdir()} for home in (one, two)]
    assert contents[0] == contents[1]
    before = one.stat().st_mtime_ns
    assert generate(tmp_path / "a", spec) == one
    assert one.stat().st_mtime_ns == before
