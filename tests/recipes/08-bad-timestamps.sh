# Incident: a topic is not deleted although retention.ms is one day.
# Asked: which producer sets timestamps that cannot be meant, and where?
# Shows: batch/timestamp-unit
logtool stat data/codec-none-0
