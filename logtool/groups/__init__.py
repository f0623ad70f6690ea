"""Groups and their committed offsets as ``__consumer_offsets`` has them: the engine of `groups`.

`columns`      what is committed, one slot for each key, in columns
`commits`      records of a log as rows for those columns
`membership`   type, state and members of a group, replayed record by record
`loading`      one partition of the topic, as its coordinator loads it
`redpanda`     the same from a log of Redpanda, with its own transactions
`ends`         where the partitions begin and end that offsets are committed for
`state`        what all this says of each group together
`committed_offset`  one committed offset, and when it expires
`history`      what happened to one group, in the order of the log
`restoring`    the commands that commit the offsets again
`run`          over paths

The rules are those of ``CoordinatorLoaderImpl``, ``GroupCoordinatorShard``,
``OffsetMetadataManager`` and ``GroupMetadataManager`` (Kafka 3.9 and 4.3).
"""
