# Incident: one bit of a log is wrong, and another broker holds a copy of the partition.
# Asked: what is damaged, and how is it repaired without losing a record?
# Shows: logtool recover --apply --fill-from other/codec-none-0 data/codec-none-0
logtool diff 1=data/codec-none-0 2=other/codec-none-0
logtool recover --apply --fill-from other/codec-none-0 data/codec-none-0
