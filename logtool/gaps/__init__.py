"""Missing offsets: which, why, and what would fill them.

    coverage          one segment's batches as offsets that are there: a function of plain data
    segment_gaps      the gaps of one segment as they are found
    evidence          what tells a reason from another
    ledger            the segments of a partition put together: every gap with its reason
    ghosts            the batches that would fill the gaps
    fill              a log with the gaps filled
    fill_redpanda     the same as Redpanda sends it
    follower_fetches  what a follower is sent, some bytes at a time, and how it numbers that
    partition_facts   what is known of a partition before it is read
    objects           what is printed
    run               over paths

Nothing is imported here, so that a worker loads no more than the part it needs.
"""
