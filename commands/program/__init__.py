"""The command line itself, and options that few commands share.

spread               option groups, in the signature of each command
lazy_group           commands that are imported when they run
command_tree         the commands and their options, as data
parsing              values of options: sizes, durations, releases, limits, lists of paths
settings             a user's own defaults: variables ``LOGTOOL_*`` and a TOML file
broker_config        ``--broker-config``: a broker's own file, such as server.properties
value_hints          the values that a shell offers
completion           completions for bash, zsh and fish
manual               man pages of commands
guides               man pages of guides, made from Markdown
roff                 the language of man pages
printed              the documents that the commands print
start_options        the broker that will start
recovery_options     the way, the start and the consent of a recovery
coordinator_options  options of groups and txns
spark_options        options of verify and scan
shown_content        the content that dump prints
record_selectors     the records that dump looks for
salvage_output       the records that salvage writes
"""
