"""The offsets that each replica of a partition has reached: the engine of `watermark`.

replica        one replica: its high watermark, log end and leader epochs
replica_group  all replicas of a partition: the cost of each leader
comeback       the leaders while brokers come back, in every order
election       the replicas that a controller may elect
raft           replicas of Redpanda, by the rules of Raft
listed         a log dir that was listed, and the load of one of its replicas
run            the run over the log dirs of several brokers
simulation     produce, fetch and truncation, step by step, for `watermark simulate`
"""
