"""The last line of a forecast, which counts its most important actions."""

from collections.abc import Iterator, Mapping

from logtool.commands.printing import text


def parts(
    counts: Mapping[str, int], of_dirs: Mapping[str, int], purged_bytes: int
) -> Iterator[str]:
    """Yield the parts of the last line, from the counts of actions by name.

    `of_dirs` has those on log dirs as wholes.
    """
    dirs = {name: text.count(number, "log dir") for name, number in of_dirs.items()}
    if lost := counts["lost"] - of_dirs["lost"]:
        yield f"{lost:,} lost"
    if of_dirs["lost"]:
        yield f"in {dirs['lost']} something is lost or no longer served"
    if counts["absent"]:
        yield f"{counts['absent']:,} absent"
    if counts["unknown"]:
        yield "it is not known what becomes of all of them"
    if counts["ahead"]:
        yield f"{counts['ahead']:,} with batches that followers skip"
    if counts["stray"]:
        yield f"{counts['stray']:,} set aside as stray"
    if tiered := counts["tiered"] - of_dirs["tiered"]:
        yield f"{tiered:,} begin in remote storage (-v shows them)"
    if counts["reappear"]:
        see = "(see logtool explain checkpoint/log-start-behind)"
        yield f"{counts['reappear']:,} with deleted records readable again {see}"
    if counts["purge"]:
        size = text.size(purged_bytes)
        yield f"{counts['purge']:,} being deleted with {size} (logtool undelete saves them)"
    if of_dirs["offline"]:
        yield f"{dirs['offline']} offline"
    if counts["leaderless"]:
        where = text.count(counts["leaderless"], "log dir")
        yield f"replicas in {where} do not lead during the start"
    if counts["discard"]:
        yield f"{text.count(counts['discard'], 'copy', 'copies')} emptied or deleted"
    if counts["refuse"]:
        yield "a broker refuses to start"
    if counts["zombie"]:
        them = "it" if counts["zombie"] == 1 else "them"
        what = text.count(counts["zombie"], "segment")
        yield f"{what} taken for the log although a truncation had removed {them}"
    if counts["overlap"]:
        what = text.count(counts["overlap"], "segment")
        yield f"{what} with an overlap that plan cannot resolve"
    if counts["erase"]:
        yield f"{text.count(counts['erase'], 'file')} of others DELETED"
