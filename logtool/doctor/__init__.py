"""The first look at log dirs in an incident, and at what logtool runs on.

No rule stands here: what is wrong is what `verify` finds, what a start does is what `plan` says.

answers      what is answered, as plain data
examination  the run: a quick look, the next start, then every batch while there is time
diagnosis    the answers out of what a run found, and the one command to run next
environment  the software and the limits that logtool runs with
"""
