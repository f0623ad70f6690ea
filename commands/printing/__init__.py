"""Bytes to a stream: tables, text and progress, and what happens when the stream ends.

writers        tables, JSON, NDJSON, CSV and TSV
block_lines    the lines of blocks of batches and records
dump_parquet   records and batches as a Parquet file
kafka_text     the lines of Kafka's own dump tool
text           numbers, times and sizes as words
terminal       the columns of a terminal, and colour
progress       how far a command has come
interrupts     what a signal ends a command with
streams        standard output that is closed or full
"""
