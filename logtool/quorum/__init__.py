"""The copies of the metadata log that a cluster has left: who votes, and which copy to keep.

``copy.py`` reads one copy with what stands beside it, ``verdict.py`` holds the copies against each
other, ``rewrite.py`` says what makes a controller start from one of them with other voters, and
``run.py`` is one run of the command.
"""
