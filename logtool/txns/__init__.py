"""Producers and transactions as the logs tell them: the engine of `txns`.

open_transactions  what the segments of a log tell together
coordinator        what __transaction_state says of each transactional id
joining            open transactions beside the entries of their coordinators
run                over paths
"""
