"""PySpark: `scan` and `source`, two packages that do not know each other. Nothing else imports it.

connect         Spark Connect, which the data source works through and the pipeline does not
session         the Spark session, and the error of one that does not start
engine          the engine of `verify` on Spark: the same work, in executors
identity        the log dir, broker and partition that a path belongs to
finding_row     the rows of the table ``findings``
questions       gaps, producers, transactions and replicas, from summaries of what was read
segment_totals  the sums of one segment
worker_errors   errors inside Spark's Python workers, in one sentence
scan            the job of `logtool scan` and its runs
source          the data source ``kafka-log``

Nothing is imported here, so that an executor loads no more than the part it needs.
"""
