"""The start of a broker on whole log dirs: `plan` predicts it, `recover` carries it out.

log_dir_start      one log dir: what its start changes, and the requests for its partitions
strays             logs that the metadata log does not know
request            the request for the load of one partition
filled             a log whose damage is filled from other copies
partition          the next start of one partition
plain_partition    the same for a small partition without faults that was closed in order
tiering            a start on a log whose first segments are in remote storage
hidden_end         sound batches that a start after a clean stop hides
unread             the segments that a start opens without reading them
recovery_points    partitions without a recovery point, which are recovered as a whole
redpanda_start     the start of Redpanda on a partition
redpanda_forecast  the forecast of that start
automq             the start of a node of AutoMQ: its WAL, and the replay of its partitions
loads              the partitions of a forecast on their way to a worker
forecast           the forecast over paths
releases           the start of every release on the same log dirs
policies           today's recovery compared with that of Kafka 0.8.0
duration           the time that a start takes
rates              the rate at which logs are read here, and what a broker needs on top
disks              samples of the disks of the logs, and times of reading
fill_plan          the fill of a log from other copies, and the command for it
recover            the changes of the start, made without a broker
"""
