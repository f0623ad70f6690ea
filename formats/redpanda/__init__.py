"""The files of a Redpanda data directory: bytes in, values out; no path, no print, no policy.

`names`              the kind of a file or folder
`record_batch`       the header, its two CRCs, the types of batches, and Kafka's form of a batch
`ghost_batch`        the batches that stand for a gap while a follower is filled
`base_index`         the positions of batches in a segment
`compaction_index`   the keys of a segment
`snapshot`           the frame of a snapshot, and the metadata of a Raft snapshot
`kvstore`            the key-value store of a broker, next to the logs
`offset_translation` Raft offsets as Kafka offsets, and back
`group_transaction`  offsets that a group commits in a transaction
"""
