"""How the playback of a log looks: its checkpoints, where it starts, and what was not checked."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.disk import shell

if TYPE_CHECKING:
    from logtool.startup.partition import PartitionForecast

_FROM = {
    "last-entry": "in its last entry",
    "recovery-point": "the recovery point",
    "snapshot": "that of the snapshot",
}


def lines(obj: Object) -> Iterator[str]:
    """Yield what a partition says of its playback, none where there is none."""
    if obj["distrust"]:
        yield f"  was checked and not trusted: {text.escape(obj['distrust'])}"
    playback = obj["playback"]
    if playback is None:
        return
    yield (
        f"  checkpoints: producer snapshot {playback['producer_snapshot_checkpoint']}, transaction "
        f"index {playback['transaction_index_checkpoint']} "
        f"({_FROM[playback['transaction_index_checkpoint_from']]}), time index "
        f"{playback['time_index_checkpoint']}"
    )
    line = f"  the playback starts at offset {playback['starting_offset']}"
    if playback["replayed_from"] != playback["starting_offset"]:
        line += f", with what was known at {playback['replayed_from']}"
    yield line + f"; {text.size(playback['bytes_saved'])} less read than to rebuild"


def last_lines(forecasts: Sequence["PartitionForecast"]) -> Iterator[str]:
    """Yield what was not checked of logs that were trusted, and how to check it."""
    trusted = [one for one in forecasts if one.trusted]
    if not trusted:
        return
    size = sum(one.unchecked_bytes for one in trusted)
    segments = sum(one.segments for one in trusted)
    unread = sum(one.unread_segments for one in trusted)
    headers = sum(one.bytes_read for one in trusted)
    saved = sum(one.bytes_saved for one in trusted)
    places = dict.fromkeys(one.request.path.parent for one in trusted)
    if len(forecasts) == 1:
        places = {trusted[0].request.path: None}
    command = " ".join(["logtool verify", *map(shell.path, places)])
    yield (
        f"--trust-log: no CRC of {text.count(segments, 'segment')} ({text.size(size)}) was "
        f"compared; {text.size(headers)} of headers were read, and of "
        f"{text.count(unread, 'segment')} nothing; {text.size(saved)} less than to rebuild; to "
        f"check them: {command}"
    )
