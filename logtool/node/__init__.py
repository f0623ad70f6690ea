"""One node (a broker or a controller), as its log dirs show it before it starts.

node           its log dirs together: id, release, metadata image
identity       the node and the cluster that a log dir belongs to
log_dir_state  one log dir: checkpoint rows, clean-shutdown marker, index settings
dir_copies     copies of one log dir, made at different times
written_by     the releases that can have written its log dirs
own_file       the log dirs and nodes that the broker's own file names
claims         partitions that files of the node name and no log dir holds
settings       the settings of topics
options        assumptions about the start of a node: options of `plan`, `recover` and others
host_limits    open files, memory maps and heap
surroundings   facts about one partition that stand outside of its directory
lost_end       whether a log that ends below a checkpointed offset has lost its end
"""
