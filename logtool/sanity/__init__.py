"""Cost of Kafka's sanity checks of indexes at a start, eager and lazy, and the faults they find.

indexes.py      opening and checking a segment starts.py     the kinds of start
measuring.py    times, counts, page cache      model.py      projection to other sizes
judging.py      faults that all starts miss    screening.py  segments that may have such faults
listing.py      the directories given          broker_load.py the whole load of a broker
results.py      the results                    redpanda.py   the checks of Redpanda
run.py          one run of all of these        background.py the proposal of KIP-263

The checks themselves are in `logtool.checks.index_sanity`.
"""
