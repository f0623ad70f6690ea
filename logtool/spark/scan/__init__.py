"""The job of `logtool scan`: one pass over log dirs, their tables, and the runs that hold them.

scan              log dirs to tables: one pass over the bytes, then the questions across segments
engine            the engine of that pass, and the rows that the driver writes
unit_rows         the rows that an executor writes in that pass
answers           the questions asked of what was staged, and their tables written
job_progress      the progress of the jobs of Spark
storage           Parquet files, and the directory that holds those of a run
batches_of_run    batches of that pass read again, where copies differ
store             a disk or a bucket
manifest          the file that makes files a run
runs              runs begun, ended and cleaned up
ownership         the process of a run under way, and a test whether it still lives
incremental       reports that a run keeps for a later one with ``--since``
incremental_copy  files of an earlier run that a later one takes over
history           one row for each run
compare_runs      the findings of two runs compared
"""
