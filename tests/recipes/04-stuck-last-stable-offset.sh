# Incident: consumers of committed records stand still, their lag grows.
# Asked: which transaction holds them up, since when, and how is it ended?
# Shows: hanging
# Shows: kafka-transactions.sh
logtool txns --open --now 2026-11-21T02:00:00Z data
