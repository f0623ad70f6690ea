"""Segments of Redpanda as Kafka's, and the reverse: other headers around the same records.

pieces       one new log, and the batches that count in it
to_kafka     a segment of Redpanda as a log of Kafka
to_redpanda  a log of Kafka as segments of Redpanda
run          one run over segments, and the directory that it writes
"""

from logtool.convert.run import Conversion, Converted

__all__ = ["Conversion", "Converted"]
