"""The questions across segments and brokers: summaries of what was read, and answers from them.

range_summary  the summary of each range that a task read
gap_rows       the part of that summary about gaps
producer_rows  the part about producers and transactions, whose sums add up
digests        the part about copies: digests of batches
answering      all questions, as one function of plain data to plain data
facts          facts about partitions from files other than logs, for `gaps`
gaps           the gaps of one partition
replicas       the copies of one partition

`scan` and the data source ask them. Nothing here needs Spark.
"""
