# Incident: records of a range of offsets have to be produced again, into another topic.
# Asked: the range, with keys, in a form that a producer takes.
# Shows: kcat -P -b
logtool dump --offset 0..3 --format kcat data/log_append_time-0
