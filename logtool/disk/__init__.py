"""What lies where: files and URLs, log dirs and partitions, and who has them open.

files      opening, listing and reading what is on a disk or behind a URL
mapped     a stretch of a file as memory, for kernels alone
remote     the same behind a URL: a `RemotePath` stands for a `Path`
partition  the files of one partition directory, by segment
log_dir    the partitions and small files of one log dir, and what a path is
node_dir   ID=DIR: a directory, and the broker that it is of
cluster    which cluster a log dir is of
in_use     whether a broker is running on a log dir
shell      paths and options as a shell takes them, for printed commands
"""
