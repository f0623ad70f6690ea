"""One log read once: its batches, what its indexes say of them, which producers it leaves.

walk            one pass over a log: a table of sound batches, or a range of damage
resync          where the log goes on behind damage, and why a batch in a record is no such place
candidates      headers that may stand behind damage
control_rows    what control batches say, in the rows of a table
damage          what a range that is no sound batch is, and how it is described
index_join      index entries held against the batches of the log
producer_state  producers and transactions replayed from the batches
kafka_start     where the Kafka offsets of a log of Redpanda begin
kvstore_state   what the cores of a broker of Redpanda remember of its logs
"""
