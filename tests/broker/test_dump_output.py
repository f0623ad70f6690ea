"""Assignment of the dump tool's output to files (no broker needed)."""

from __future__ import annotations

from broker.dump import _by_file, _groups, _split


def test_output_is_cut_at_the_headlines_of_the_files() -> None:
    output = (
        b"Dumping t-0/1.log\nLog starting offset: 1\nDumping t-0/2.log\nLog starting offset: 2\n"
    )
    assert _split(output, ["t-0/1.log", "t-0/2.log"]) == {
        "t-0/1.log": b"Dumping t-0/1.log\nLog starting offset: 1\n",
        "t-0/2.log": b"Dumping t-0/2.log\nLog starting offset: 2\n",
    }


def test_a_payload_that_looks_like_another_headline_stays_in_its_file() -> None:
    output = b"Dumping a.log\n| payload: x\nDumping zzz.log\nDumping b.log\n"
    assert _split(output, ["a.log", "b.log"])["a.log"].endswith(b"Dumping zzz.log\n")


def test_files_that_were_not_reached_have_no_output() -> None:
    assert list(_split(b"Dumping a.log\nLog starting\n", ["a.log", "b.log"])) == ["a.log"]
    assert _split(b"", ["a.log"]) == {}


def test_complaints_go_to_the_file_they_name_and_the_rest_to_none() -> None:
    errors = (
        b"Mismatches in :a.index\n  Index offset: 1, log offset: 2\n"
        b"The following indexed offsets are not found in :b.timeindex\n"
        b"Indexed offset: 0, found log offset: -1\n"
        b'Exception in thread "main" java.lang.RuntimeException\n\tat x.Y\n'
    )
    found = _by_file(errors)
    assert list(found) == ["a.index", "b.timeindex", ""]
    assert found["b.timeindex"].endswith(b"-1\n")
    assert found[""].endswith(b"\tat x.Y\n")


def test_file_names_are_grouped_below_the_limit_of_one_argument() -> None:
    names = [f"topic-0/{number:020d}.log" for number in range(9000)]
    groups = list(_groups(names))
    assert len(groups) > 1
    assert [name for group in groups for name in group] == names
    assert all(len(",".join(group)) < 128 * 1024 for group in groups)
