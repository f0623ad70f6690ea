"""The command line about itself: its tree, help, completions and man pages.

spread        options that commands share, in the signature of each
lazy_group    a command is imported when it runs
command_tree  the commands and their options, as data
completion    completions for bash, zsh and fish
manual        man pages
saved         what salvage and undelete share
"""
