"""Producers and transactions as the logs tell them: the engine of `txns`.

open_transactions  what the segments of a log tell together
run                over paths
"""
