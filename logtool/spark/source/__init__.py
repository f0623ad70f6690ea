"""The data source ``kafka-log``: log dirs as tables of Spark, in batches and as a stream.

source          the data source, and the functions that return DataFrames
options         its options, and their meaning
catalog_table   the options of a table in Spark's catalog
kafka_options   the options of Spark's own source, for the table ``kafka``
kafka_times     the offset at which a time begins, as a broker finds it
wanted          the rows that are wanted: by partition, offset and time
listing         the partition dirs that paths name
reading         log dirs cut into tasks by what is wanted of them, each read as rows
read_tasks      one such task, as plain data
bundles         tasks gathered into bundles of about equal bytes
seek            the byte at which reading may begin, by indexes that are proven
loss            the error of rows that a read cannot return any more
finding_rows    the table ``findings``: damage in the logs, and inputs that cannot be read
question_rows   the tables ``gaps``, ``producers`` and ``transactions``
kafka_table     the table ``kafka``: offsets and records as consumers see them
stream_offsets  log dirs that grow: the end of each partition, and the tasks between two positions
streaming       the data source as a stream
"""
