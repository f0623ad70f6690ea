"""The rules of replication, and a model of a partition's replicas to play scenarios with.

truncation     where a follower cuts its log when a leader takes over
node           the log of one replica in the model, and what its leader knows of it
producer       when a producer gets its answer: acks
consumer       what a consumer may see: high watermark and last stable offset
state_machine  the model: replicas that fetch, stop, start and elect
scenario       a scenario file, played on the model
scenarios      the scenarios that ship
"""
