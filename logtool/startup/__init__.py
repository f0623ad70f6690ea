"""The start of a broker on whole log dirs: `plan` foretells it, `recover` carries it out.

log_dir_start  one log dir: what its start does to it, and the requests for its partitions
strays     what a broker does with a log that its metadata log does not know
request    what is asked of the load of one partition
partition  what the next start does to one partition
redpanda_start, redpanda_forecast  the same for a partition of Redpanda
forecast   the same over paths, and what becomes of the log dirs as wholes
duration   how long it takes
rates      how fast logs are read here, and what a broker needs besides
disks      what the disks of the logs give, and the times of reading
recover    the same changes, carried out without a broker
"""
