"""What Kafka's sanity checks of indexes cost at a start, eager and lazy, and what they see.

kafka_check.py  the checks themselves         indexes.py    opening and checking one segment
starts.py       what each kind of start does  background.py the proposal of KIP-263
measuring.py    times, counts, page cache     model.py      from there to other sizes
judging.py      what they all pass over       listing.py    the directories given
results.py      what is said                  run.py        all of it
"""
