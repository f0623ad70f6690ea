"""Log dirs against what the metadata log says of them, and what may be deleted of them.

``proof.py`` says whether other copies hold every batch of one, and ``holdings.py`` keeps which they
hold while all are read. ``superseded.py`` says whether compaction replaced in them what they lack,
and ``transaction_outcomes.py`` how transactions ended. ``directories.py`` finds the log dirs, the
future copies and the strays.
"""
