"""Cost of Kafka's sanity checks of indexes at a start, eager and lazy, and the faults they find.

kafka_check.py  the checks themselves         indexes.py    opening and checking one segment
starts.py       the kinds of start            background.py the proposal of KIP-263
measuring.py    times, counts, page cache     model.py      projection to other sizes
judging.py      faults that all starts miss   screening.py  segments that may have such faults
listing.py      the directories given         broker_load.py the whole load of a broker
results.py      the results                   redpanda.py   the checks of Redpanda
run.py          one run of all of these
"""
