"""The questions across segments and brokers, answered from the summaries of one pass.

    answering  all questions, as one function of plain data to plain data
    facts      facts about partitions from files other than logs, for `gaps`
    gaps       the gaps of one partition
    replicas   the copies of one partition
    batches    batches read from the files of a pass, where digests of copies differ

Producers and transactions are sums that add up: see `logtool.spark.scan.producer_rows`. Nothing
here needs Spark.
"""
