"""The volumes of all nodes of a cluster, and what the first start on them does.

This package has no rules of its own for logs: the copies of the metadata log are compared as in
`quorum`, the log dirs as in `dirs`, the replicas as in `watermark`, and the start as in `plan`.

volumes      the log dirs, and the node that each of them belongs to
controllers  the controllers that may win the election, and the image with which brokers start
partitions   the leaders that a partition may get, and the offsets that each of them cuts
offsets      committed offsets of groups that run ahead of the data
unnamed      volumes whose node no file names: by their partitions, and new disks
order        the order of the start, and the elections that lose least
steps        the steps before the start, and all of them in their order
run          the run over all volumes
"""
