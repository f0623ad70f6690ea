"""Scenarios for `logtool watermark simulate` that come with the program."""
