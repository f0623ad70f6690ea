"""Log dirs compared with the metadata log, and the copies in them that may be deleted.

``proof.py`` decides whether other copies hold every batch of a copy, and ``holdings.py`` collects
the batches that they hold while all are read. ``superseded.py`` decides whether compaction replaced
the batches that they lack, and ``transaction_outcomes.py`` finds how transactions ended.
``cluster.py`` joins the log dirs with the metadata log and with a broker's own file, and
``directories.py`` finds the log dirs, the future copies and the strays. ``unnamed.py`` finds out
which log dir it is that has lost its id.
"""
