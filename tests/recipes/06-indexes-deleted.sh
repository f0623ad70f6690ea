# Incident: somebody deleted index files of a stopped broker to free some space.
# Asked: does the broker come up, what does it cost, and can it be mended before the start?
# Shows: 7 of 88 segments
# Shows: 7 files changed
logtool plan data
logtool rebuild-index --apply data
