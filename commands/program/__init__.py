"""The command line itself, and options that few commands share.

spread               option groups, in the signature of each command
lazy_group           commands that are imported when they run
option_groups        groups of options in the help and in man pages
command_tree         the commands and their options, as data
parsing              values of options: sizes, durations, releases, limits, lists of paths
settings             defaults of the user: variables ``LOGTOOL_*`` and a TOML file
broker_config        ``--broker-config``: a broker's configuration file, such as server.properties
node_configs         configuration files of several nodes, and the log dirs of each
value_hints          the values that a shell offers
completion           completions for bash, zsh and fish
manual               man pages of commands
guides               man pages of guides, made from Markdown
roff                 roff, the format of man pages
version              the lines of --version
printed              the documents that the commands print
start_options        the broker that will start
recovery_options     strategy, start point and permitted changes of a recovery
coordinator_options  options of groups and txns
spark_options        options of verify and scan
broker_dirs          the log dirs of brokers, as doctor and report take them
case_paths           case files in the place of directories, as few runs have them
case_inputs          inputs of a command that takes case files
check_options        limits of what checks print, and the file of their metrics
cell_options         the cells of CSV and TSV
shown_content        the content that dump prints
record_selectors     the records that dump looks for
bucket_inputs        local paths, and buckets of AutoMQ also behind URLs
salvage_output       the records that salvage writes
"""
