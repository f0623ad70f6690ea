"""What logs add up to: the engine of `stat`.

statistics  sizes, counts, codecs, producers and times of one log; parts add up to the whole
run         over paths, segment by segment, in several threads
"""
