"""The first look at log dirs in an incident, and at the environment of logtool.

This package has no rules of its own: faults are those that `verify` finds, and the effects of a
start are those that `plan` predicts.

answers       the answers, as plain data
holdings      partitions, segments and bytes of each log dir
examination   the run: a quick look, the next start, then every batch while there is time
log_map       the segments of each log with the places of damage
diagnosis     the answers from the results of a run
controllers   whether the given log dirs hold enough voters to elect a controller
coordinators  the groups that lost records may concern
next_command  the one command to run next
environment   the software and the limits that logtool runs with
"""
