"""The program in the packages that need no Python on the host."""

from logtool.__main__ import main

main()
