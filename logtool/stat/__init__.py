"""Totals and statistics of logs: the engine of `stat`.

statistics  sizes, counts, codecs, producers and times of one log; parts add up to the whole
sizes       names and sizes alone, with the real blocks
run         one run over paths, segment by segment, in several threads
"""
