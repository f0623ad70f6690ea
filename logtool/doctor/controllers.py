"""The answer of `doctor` about several nodes: whether they can elect a controller."""

from collections.abc import Sequence

from logtool.dirs.cluster import voters_of
from logtool.disk import shell
from logtool.doctor.answers import ControllersAnswer
from logtool.doctor.examination import Examination


def controllers(runs: Sequence[Examination]) -> ControllersAnswer | None:
    """Return the answer if the nodes cannot elect a controller; None if they can.

    None too if none of them votes, or if a broker of the cluster was not given: the other
    controllers may then be where that broker is.
    """
    nodes = [run.forecast.broker.node for run in runs]
    holders = [one for one in nodes if one.metadata_log and one.image]
    given = {one.node_id for one in nodes}
    voters = voters_of(holders)
    missing = voters - given
    brokers = {number for one in holders if one.image for number in one.image.brokers}
    can_elect = len(voters - missing) > len(voters) // 2
    if len(nodes) < 2 or can_elect or missing == voters or brokers - given - missing:
        return None
    logs = (one.metadata_log.path for one in holders if one.metadata_log)
    command = shell.join(["logtool", "quorum", *map(str, logs)])
    return ControllersAnswer(tuple(sorted(voters)), tuple(sorted(missing)), command)
