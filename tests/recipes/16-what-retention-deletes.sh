# Incident: a restore brought old records back, and thirty seconds after the start they may be gone.
# Asked: what does retention delete, when, and what keeps the rest?
# Shows: small-segments-0
logtool retention --at 2023-11-22T00:00:00Z data
logtool retention --at 2023-11-22T00:00:00Z --with retention.ms=-1 data
