"""Tiered storage: the remote segments of partitions, by their metadata: the engine of `remote`.

`segments`     remote segments and their states, replayed event by event
`loading`      one partition of ``__remote_log_metadata``, read to its end or to a moment
`local`        the copies of partitions in log dirs: their segments, ends and leader epochs
`coverage`     offsets by leader epoch that brokers find in remote storage
`lineage`      one partition with both parts, and the faults of it
`deletions`    remote segments that were deleted although their records were in retention
`findings`     the rules for these
`run`          over log dirs
`objects`      the objects below a prefix, by segment
`contents`     the log and the indexes in the objects of one segment
`object_findings`  the rules for objects
`verification` over the objects below a prefix
`expiry`       remote segments that retention deletes, by the size and age of both tiers
`rebuild`      partitions in a bucket, and how a new cluster would find their segments
`mending`      files for partition dirs that lack leader epochs or local segments
`restore`      new partition dirs for partitions without a local copy
`stored`       the files of remote segments, as the objects have them
`alone`        partitions without a local copy
`tiers`        log dirs with the remote segments of their partitions, as one log
`joining`      paths on a command line: log dirs with the objects given with them

The rules are those of ``RemoteLogManager``, ``RemoteLogMetadataCache``,
``RemoteLogLeaderEpochState`` and ``ConsumerTask`` (Kafka 3.9 and 4.2).
"""
