"""The command line about itself, and options that few commands share.

spread               options that commands share, in the signature of each
lazy_group           a command is imported when it runs
command_tree         the commands and their options, as data
value_hints          what a shell can offer in the place of a value
completion           completions for bash, zsh and fish
manual               man pages
start_options        the broker that will start
recovery_options     how a log is recovered, from where on, and what may be done
coordinator_options  what groups and txns share
spark_options        what verify and scan share
salvage_output       the records that salvage writes
"""
