"""The walk over the bytes of a log, which only `logtool.log` uses."""
