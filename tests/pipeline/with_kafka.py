"""A program that runs the same queries on Spark's source ``kafka`` and on the table ``kafka``.

A process of its own, because a process can have only one session, with one set of jars. It prints
JSON: the columns of both, and for each query the rows of both::

    python -m pipeline.with_kafka BOOTSTRAP LOG_DIR TOPICS JARS
"""

import json
import sys

from logtool.spark.session import session
from logtool.spark.source import source

QUERIES = (
    "select * from log",
    "select topic, partition, count(*), min(offset), max(offset), sum(length(value)) from log"
    " group by topic, partition",
    "select cast(key as string) as k, hex(value) as v from log where topic = 'codec-none'",
    "select topic, timestampType, min(timestamp), max(timestamp) from log group by 1, 2",
    "select topic, partition, offset from log where value is null or key is null",
    "select window(timestamp, '1 minute').start as minute, count(*) from log group by 1",
    "select topic, offset, h.key, h.value from log lateral view explode(headers) as h",
    "select count(*) from log a join log b using (topic, partition, offset)",
)
FORMATS = ("kafka", "kafka-log")


def main(bootstrap: str, log_dir: str, topics: str, jars: str) -> None:
    settings = {"spark.jars": jars, "spark.sql.shuffle.partitions": "2"}
    with session("local[2]", settings) as spark:
        source.register(spark)
        found = {"columns": {}, "rows": {query: {} for query in QUERIES}}
        for name in FORMATS:
            for headers in "false", "true":
                reader = spark.read.format(name).option("subscribe", topics)
                reader = reader.option("includeHeaders", headers)
                if name == "kafka":
                    frame = reader.option("kafka.bootstrap.servers", bootstrap).load()
                else:
                    frame = reader.option("table", "kafka").load(log_dir)
                found["columns"].setdefault(headers, {})[name] = frame.schema.jsonValue()
            frame.createOrReplaceTempView("log")
            for query in QUERIES:
                rows = spark.sql(query).toJSON().collect()
                found["rows"][query][name] = sorted(rows)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
