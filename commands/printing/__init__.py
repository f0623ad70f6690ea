"""Bytes to a stream: tables, text and progress, and the end of the stream.

writers       tables, JSON, NDJSON, CSV and TSV
fitting       the columns and texts of a table, fitted to a terminal
block_lines   the lines of blocks of batches and records
dump_parquet  records and batches as a Parquet file
kafka_text    the lines of Kafka's own dump tool
kafka_commits  their texts for commits of offsets, for blocks of them
kafka_lines   these lines for objects, and for blocks of them
text          numbers, times and sizes as words
terminal      the columns of a terminal, and colour
progress      the progress of a command
interrupts    the end of a command by a signal
streams       standard output that is closed or full
"""
