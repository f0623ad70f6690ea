"""The floor that every command stands on: from the path of a log dir to a record.

opening         list a log dir or a partition dir, and decide who wrote it
buckets         buckets and prefixes of object stores, known by names
inputs          paths on a command line: the kind of each, and the node it belongs to
selection       the partitions that a command is to look at
dir             log dirs, partitions and segments
file            one file as its directory listed it
flavour         Kafka, Redpanda or AutoMQ: the questions that this package asks of one
kafka           log dirs and partitions that Kafka wrote
redpanda        data directories and partitions that Redpanda wrote
redpanda_dir    names of directories and files of Redpanda
small_files     small files of a log dir or a partition dir, parsed and checked
batches         the batches of a log: the only way in to the walk
batch_columns   batches as columns, with the damaged ones that are framed
chunk           sound batches, or a range of damage: the unit in which a log is read
claims          what files say should exist: claims, the facts that end them, unmet claims
partition_claims  the claims of the files of a partition dir
damage          a range that is not a sound batch, and how it is described
damaged_bytes   damage with its file and the offsets that may stand there
lost_data       a damaged batch that held data alone, by its header
order           the batches of a log whose offsets are not the segment's, or do not rise
records         reads the records of batches; the only module that decodes them
record_table    records as columns, and what cannot be read
record_objects  records as objects, one for each
control         control records, and the ends of transactions among batches
control_rows    control batches as rows of a table
keys            numbers for the keys of records
decoded         records of brokers' own topics as values for JSON, without secrets
arrow_rows      batches and records as rows of Arrow
arrow_table     the records of a log as a stream of columns of Arrow
arrow_columns   arrays of Arrow, straight out of memory
walk            one pass over the bytes of a log; private to this package
index_entries   some entries of an index file, found without reading the others
index_join      index entries compared with the batches of the log
producer_state  producers and transactions replayed from the batches
base_index      the base index that Redpanda writes for a segment
kafka_start     the offset at which the Kafka offsets of a log of Redpanda begin
kafka_offsets   Kafka offsets of the batches of Redpanda
kvstore         the key-value store of each core of Redpanda
automq          partitions of AutoMQ, shown as a log dir of Kafka
automq_bucket   the objects of AutoMQ in a bucket, their index blocks, and the WAL of a node
"""
