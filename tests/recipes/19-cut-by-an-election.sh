# Incident: an election cut records that only the log dir of the old leader, node 2, still has.
# Asked: how many records are gone, and which ones?
# Shows: 80 records
logtool dump --count --topic replica.diverged --missing-in node-3 node-2
logtool dump --limit 3 --topic replica.diverged --missing-in node-3 node-2
