"""Files that change or fail while a scan reads them."""

import pytest
from damage import flip
from scans import AT, WHOLE, Bytes, ranges, rows, scanned

from logtool.errors import UnreadableError
from logtool.log.walk import scanner


@pytest.mark.parametrize("buffer", [61, 150, 1 << 20])
@pytest.mark.parametrize("broken", [False, True])
def test_a_file_that_shrinks_at_any_read_to_any_size_ends_early(buffer, broken, monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", buffer)
    monkeypatch.setattr(scanner, "LARGEST_BUFFERED_BATCH", 100)
    data = flip(flip(WHOLE, AT[1] + 70), AT[3] + 8) if broken else WHOLE

    class Shrinking(Bytes):
        def __init__(self, when: int, left: int) -> None:
            super().__init__(data)
            self.when, self.left = when, left

        def read_into(self, buffer, position):
            if self.calls == self.when:
                self.data = self.data[: self.left]
            return super().read_into(buffer, position)

    for when in range(1, 25):
        for left in range(0, len(data), 37):
            table, damages, _ = scanned(Shrinking(when, left))

            end = sum(d.length for d in damages) + int(table.size.sum())
            assert end <= len(data)


def test_a_file_that_shrinks_while_damage_is_described_ends_there(monkeypatch):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", AT[3] + 30)
    data = flip(WHOLE, AT[3] + 16, 0x40)

    class ShrinkingAtTheSecondRead(Bytes):
        def __init__(self, left: int) -> None:
            super().__init__(data)
            self.left = left

        def read_into(self, buffer, position):
            if self.calls == 1:
                self.data = self.data[: self.left]
            return super().read_into(buffer, position)

    for left in range(len(data)):
        source = ShrinkingAtTheSecondRead(left)
        table, damages, _ = scanned(source)

        assert source.calls > 1
        assert table.position.tolist()[:3] == AT[:3]
        assert sum(d.length for d in damages) <= max(0, left - AT[3])


def test_a_file_shorter_than_it_said_is_scanned_to_its_end():
    for size in range(0, len(WHOLE), 11):
        table, damages, _ = scanned(Bytes(WHOLE[:size], size=len(WHOLE)))
        wanted, wanted_damages, _ = scanned(WHOLE[:size])

        assert rows(table) == rows(wanted)
        assert ranges(damages) == ranges(wanted_damages)


def test_what_is_appended_meanwhile_is_not_looked_at():
    for size in (AT[2], AT[2] + 30, AT[3]):
        table, damages, _ = scanned(Bytes(WHOLE, size=size))
        wanted, wanted_damages, _ = scanned(WHOLE[:size])

        assert rows(table) == rows(wanted)
        assert damages == wanted_damages


def test_an_error_of_the_disk_ends_the_scan_and_no_other_error_takes_its_place(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 100)
    data = flip(flip(WHOLE, AT[1] + 70), AT[3] + 8)

    class Failing(Bytes):
        def __init__(self, when: int) -> None:
            super().__init__(data)
            self.when = when

        def read_into(self, buffer, position):
            if self.calls == self.when:
                raise UnreadableError(tmp_path, "Input/output error")
            return super().read_into(buffer, position)

    whole = Bytes(data)
    scanned(whole)
    for when in range(whole.calls):
        with pytest.raises(UnreadableError):
            scanned(Failing(when))
