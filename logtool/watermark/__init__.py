"""How far each replica of a partition has come: the engine of `watermark`.

replica        one replica: its high watermark, log end and leader epochs
replica_group  all replicas of a partition: what each leader would cost
of_redpanda    the same of Redpanda, by the rules of Raft
run            over the log dirs of several brokers
"""
