"""A case file: a copy of log dirs without payload, on which commands give the same answers.

frames      the frames of a case file: what is compressed together
forging     four bytes that give a batch a wanted CRC
packing     a compressed stream of an exact size
bodies      records without content in the place of those of a batch
renaming    names that stand for others, of the same size
renamed_records  records of brokers' own topics with other names in them
blanking    batches and damage without payload, at the same positions
logs        a whole log without payload, compared with the log
manifest    the description of a case file
archive     the tar and its frames, written and read
making      make a case file of log dirs
opening     show a case file, and expand it into a directory
given       case files among the paths of a command line
"""
