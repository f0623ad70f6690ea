# Incident: the disk of the only replica of a tiered topic was lost; its segments are in the bucket.
# Asked: what does the start do, and how does the topic survive it?
# Shows: end_offset
# Shows: cp -Rnp
logtool plan data
logtool remote restore --output back objects data
