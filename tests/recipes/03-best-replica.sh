# Incident: all three brokers of a partition were killed. Which one may lead without loss?
# Asked: which copy has every acknowledged record, and where do the copies differ?
# Shows: DIVERGED
# Shows: offset 120
logtool watermark node-1 node-2 node-3
logtool diff --topic 'replica.*' node-1 node-2 node-3
