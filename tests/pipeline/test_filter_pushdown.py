"""The reason why the data source takes no filters of Spark: they reach other uses of a frame."""

from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_spark_applies_the_filters_of_one_use_of_a_frame_to_the_others(spark):
    """If this fails, Spark has mended it: the data source may then define ``pushFilters``."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Counting(DataSourceReader):
        rows = 3

        def pushFilters(self, filters: Any) -> Any:  # noqa: N802  (Spark's)
            self.rows = 1
            yield from filters

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(self.rows)]

        def read(self, partition: InputPartition) -> Any:
            return iter([(number,) for number in range(partition.value)])

    class Filtered(DataSource):
        @classmethod
        def name(cls) -> str:
            return "filtered"

        def schema(self) -> str:
            return "number int"

        def reader(self, schema: Any) -> DataSourceReader:
            return Counting()

    spark.dataSource.register(Filtered)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("filtered").load()
        assert frame.where("number = 0").count() == 1
        assert frame.count() == 1  # of three
        assert spark.read.format("filtered").load().count() == 3
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
