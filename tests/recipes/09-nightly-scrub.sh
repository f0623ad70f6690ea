# Incident: none; every night, for ten minutes, everything is to be checked in turn.
# Asked: is anything damaged, and is all of it looked at in the end?
# Shows: no errors
logtool verify --resume scrub.json --max-duration 10m --max-rate 200M data
