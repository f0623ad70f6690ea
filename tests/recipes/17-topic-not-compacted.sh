# Incident: a compacted topic grows and grows.
# Asked: why does the log cleaner not clean it?
# Shows: active-segment
logtool cleaner --at 2026-11-21T02:00:00Z data
