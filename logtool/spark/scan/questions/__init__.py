"""What is asked across segments and brokers, of what one pass left of each stretch.

    answering  all of them, as one function of plain data to plain data
    facts      what files beside the logs tell of the partitions, for `gaps`
    gaps       the gaps of one partition
    replicas   the copies of one partition
    batches    batches out of the files of a pass, where digests of copies differ

Producers and transactions are sums that add up: see `logtool.spark.scan.producer_rows`. Nothing
here needs Spark.
"""
