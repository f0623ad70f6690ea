"""The objects of AutoMQ: bytes in, values out; no path, no print, no policy.

`names`            the key of an object: its kind and its numbers
`stream_record`    the records of streams, in objects and in a WAL
`data_object`      stream objects and stream set objects: data blocks, index block, footer
`composite_object` objects that link others
`wal_object`       the objects of a WAL, and their records
`block_wal`        the WAL on a device, before May 2025
`range_index`      the sparse index of the ranges of a node
`reservation`      the owner of a WAL
`stream_ranges`    packed offsets of streams in records of the metadata log
`meta_stream`      the entries of a meta stream: segments, log start, leader epochs, snapshots
"""
