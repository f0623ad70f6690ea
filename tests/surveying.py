"""Commands that look at what is there in a log dir, for tests of what they pass over and miss.

Those that judge a start of a broker, or which replica has what, say that a partition could not be
read: their answer is about a broker that is stopped.
"""

SURVEYING = {
    "verify": ["verify"],
    "verify quick": ["verify", "--level", "quick"],
    "verify records": ["verify", "--level", "records"],
    "verify threads": ["verify", "--jobs", "2"],
    "dump": ["dump"],
    "dump-index": ["dump-index"],
    "stat": ["stat"],
    "stat segments": ["stat", "--segments"],
    "gaps": ["gaps"],
    "diff": ["diff", "OTHER"],
    "txns": ["txns"],
    "sanity": ["sanity"],
    "salvage": ["salvage", "--output", "saved"],
    "rebuild-index": ["rebuild-index"],
}
"""By a name for each: the command and its options."""
