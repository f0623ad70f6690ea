"""What Kafka's sanity checks of indexes cost at a start, eager and lazy, and what they see.

kafka_check.py  the checks themselves         indexes.py    opening and checking one segment
starts.py       what each kind of start does  background.py the proposal of KIP-263
measuring.py    times, counts, page cache     model.py      from there to other sizes
judging.py      what they all pass over       screening.py  and where to look for it
listing.py      the directories given         broker_load.py the whole load of a broker
results.py      what is said                  redpanda.py   the checks of Redpanda
run.py          all of it
"""
