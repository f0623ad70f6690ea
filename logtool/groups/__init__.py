"""Groups and their committed offsets as ``__consumer_offsets`` has them: the engine of `groups`.

`columns`      the newest commit of each key, in columns with a slot for each key
`commits`      records of a log as rows for those columns
`membership`   type, state and members of a group, replayed record by record
`loading`      one partition of the topic, as its coordinator loads it
`redpanda`     records of a log of Redpanda, with its own transactions, in Kafka's form
`ends`         start and end of the partitions that offsets are committed for
`state`        state of each group, from all of these
`partition_state`  proofs that a partition of the topic has lost its end
`placing`      the partition of the topic that the hash of a group names
`share_groups`  start offsets of share groups
`deliveries`   delivery states of the records that a share group reads
`committed_offset`  one committed offset, and when it expires
`history`      events of one group, in the order of the log
`restoring`    the commands that commit the offsets again
`run`          over paths

The rules are those of ``CoordinatorLoaderImpl``, ``GroupCoordinatorShard``,
``OffsetMetadataManager`` and ``GroupMetadataManager`` (Kafka 3.9 and 4.3).
"""
