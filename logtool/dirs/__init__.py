"""Log dirs against what the metadata log says of them, and what may be deleted of them.

``proof.py`` says whether other copies hold every batch of one, ``holdings.py`` keeps which they
hold while all are read, ``superseded.py`` says whether compaction replaced there what they lack,
``transaction_outcomes.py`` how transactions ended, and ``directories.py`` which log dirs, futures and
strays there are.
"""
