# Incident: a disk has to be replaced; the copy of a partition must be proved before the rest goes.
# Asked: is the copy the same, batch by batch?
# Shows: identical
cp -a data/codec-none-0 moved-0
logtool diff --identical data/codec-none-0 moved-0
