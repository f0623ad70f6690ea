"""The copies of the metadata log that a cluster has left: who votes, and which copy to keep.

``copy.py`` reads one copy with what stands beside it, and ``verdict.py`` holds the copies against
each other.
"""
