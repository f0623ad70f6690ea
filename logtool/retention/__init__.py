"""The segments that a broker deletes after its next start: the engine of `retention`.

settings  the settings of topics that retention and the cleaner depend on, each with its source
logs      the live logs of paths, with their segments and what checkpoints say of them
rules     the rules of retention over the segments of a log: which goes in which round
segments  the columns of the segments of a log that the rules need
resting   a fast reader of these columns for a log that was closed in order
stamp     the batch whose timestamp keeps a segment, or lets it go too early
early     the segments that go too early, because their timestamps are in seconds
run       the run over log dirs and partition dirs
"""
