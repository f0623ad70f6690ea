"""Where an offset or a timestamp lives: the engine of `lookup`.

location  the place of a record: segment, batch, and number in the batch
run       by the indexes as a broker does, and by reading the log
"""
