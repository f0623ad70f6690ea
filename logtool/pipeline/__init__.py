"""The data pipeline: log dirs as tables, by PySpark. The only place that imports it.

    tables      the tables: their columns, types and units
    rows        what one pass over a segment gives for them, in columns
    hiding      records of a metadata log without its secrets
    session     the Spark session, and how a failure to start it is told
    engine      the engine of `verify` on Spark: the same work, in executors
    scan        log dirs to tables: one pass over the bytes, then the questions across segments
    scan_engine  the engine of that pass, and the rows that the driver writes
    unit_rows   what an executor writes of that pass
    stretch_rows  what it tells of each stretch that a task read, for the questions: of gaps
                (gap_rows), producers and transactions (producer_rows), copies (range_rows)
    answers     the questions asked of what was staged, and their tables written
    watching    how far the jobs of Spark are
    homes       which log dir, broker and partition a path belongs to
    storage     where tables are kept: runs that are there as a whole or not at all
    ownership   whose a run under way is, and whether that process still lives
    questions   what is asked across segments and brokers
    reading     log dirs cut into pieces of work by what is wanted of them, each read as rows
    wanted      which rows are wanted: by partition, offset and time
    pieces      one piece of that work, as plain data
    seeking     where in a log that reading may begin, by indexes that are proven
    source      the data source ``kafka-log``, and the functions that return DataFrames
    source_options  what its options may say, and what that means
    growing     log dirs that grow: how far each partition goes, and what lies between two positions
    streaming   the data source as a stream of that
    one_sentence  errors inside Spark's Python workers, told in one sentence

Nothing is imported here, so that an executor loads no more than the part it needs.
"""
