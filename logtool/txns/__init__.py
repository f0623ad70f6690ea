"""Producers and transactions in logs: the engine of `txns`.

open_transactions  the transactions in the segments of a log
lost_markers       the offsets from which on damage may hide a marker
coordinator        the entries of __transaction_state, by transactional id
coordinator_logs   the logs of __transaction_state, with what they lost at their end
evidence           what shows that a transaction hangs, or that it began after the last commit
joining            open transactions joined with the entries of their coordinators
reasons            sentences on why transactions hang and how they end
findings           the findings about __transaction_state
objects            the objects that are printed
run                the run over paths
outcomes           the outcome of the transaction of each record of a saved log
after_start        open transactions of logs that were loaded as at a start
wrong_topic        batches that a client wrote to the wrong topic; segments of another partition
"""
