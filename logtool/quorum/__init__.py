"""The copies of the metadata log that a cluster has left: its voters, and the copy to keep.

``copy.py`` reads one copy and the files next to it, ``verdict.py`` compares the copies,
``giving.py`` gives the copy of a broker to controllers,
``strays.py`` finds the partition dirs that the copy to keep does not know, ``rewrite.py`` plans the
changes after which a controller starts from one of them with other voters, and ``run.py`` is one
run of the command.
"""
