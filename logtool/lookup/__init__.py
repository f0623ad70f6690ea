"""Location of an offset or a timestamp in a log: the engine of `lookup`.

run      the location of a record, by the indexes as a broker does, and by reading the log
indexes  the position from which a broker reads a segment, by its indexes
"""
