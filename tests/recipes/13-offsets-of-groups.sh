# Incident: the cluster was set up again, and only the disks of the old one show its groups.
# Asked: how far was each group, how far behind, and how are its offsets set again?
# Shows: group-classic: classic, Empty
# Shows: kafka-consumer-groups.sh
logtool groups --now 2026-11-21T02:00:00Z data
logtool groups --now 2026-11-21T02:00:00Z --restore-plan data
