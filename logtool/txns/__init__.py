"""Producers and transactions in logs: the engine of `txns`.

open_transactions  the transactions in the segments of a log
coordinator        the entries of __transaction_state, by transactional id
joining            open transactions joined with the entries of their coordinators
findings           the findings about __transaction_state
objects            the objects that are printed
run                the run over paths
wrong_topic        batches that a client wrote to the wrong topic
"""
