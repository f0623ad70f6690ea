# Incident: a topic was deleted by mistake; its partition dirs wait to be removed.
# Asked: what can come back, and is it whole?
# Shows: back
logtool undelete --output back --topic codec-none data
logtool verify back/partitions
