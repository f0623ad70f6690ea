"""Where an offset or a timestamp lives: the engine of `lookup`.

run      the place of a record, by the indexes as a broker does, and by reading the log
indexes  where a broker begins to read a segment by its indexes
"""
