"""Missing offsets, their reasons, and the ghost batches that would fill them.

coverage          the offsets of one segment's batches: a function of plain data
segment_gaps      the gaps of one segment as they are found
evidence          the evidence for a reason
table             the gaps of a log as columns
ledger            the segments of a partition put together: every gap with its reason
ghosts            the batches that would fill the gaps
fill              a log of Kafka with the gaps filled
fill_redpanda     a directory of Redpanda with the gaps filled
follower_fetches  the fetches of a follower, and the offsets that it gives to what it reads
kafka_offsets     the gaps of a log of Redpanda in Kafka's offsets
partition_facts   the facts about a partition before it is read
objects           the objects that are printed
lost_ranges       the lost beginning and the lost end of a log, by the rules of verify
missing           the gaps of a partition as objects, for the Python library
run               the run over paths

Nothing is imported here, so that a worker loads no more than the part it needs.
"""
