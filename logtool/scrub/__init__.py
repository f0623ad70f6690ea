"""A check of every segment once in a cycle, a share each night: the engine of `scrub`.

state      the state file: segments, findings and runs
tables     the tables of the state file
due        the segments that are due in a run
listing    the segments that are there, without a look into them
reports    reports of earlier runs in place of segments that are not due
open       findings that are open, and those that are gone
coverage   the share of the bytes that was checked, by age and by topic
run        one run
"""
