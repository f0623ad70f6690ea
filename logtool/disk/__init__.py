"""Bytes behind a path or a URL, and the processes that have them open.

files       opening, listing and reading of files and directories
mapped      a range of a file as memory, for kernels alone
joined      ranges of several files read as one file
remote      files behind a URL: a `RemotePath` stands for a `Path`
assembled   directories that exist nowhere, made of pieces of files
in_use      the broker that is running on a log dir
expanded    directories with the content of case files, and their names in answers
unfinished  the names of output of logtool that is not complete
shell       paths and options as a shell takes them, for printed commands
"""
