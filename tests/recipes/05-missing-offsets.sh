# Incident: a consumer skipped offsets. Compaction, or a loss?
# Asked: which offsets are missing, and why?
# Shows: segment-missing 38
# Shows: compaction
logtool gaps data/small-segments-0 data/compacted.keys-0
