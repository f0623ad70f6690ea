"""Log dirs against what the metadata log says of them, and what may be deleted of them.

``proof.py`` says whether other copies hold every batch of one, and ``directories.py`` which log
dirs, futures and strays there are.
"""
