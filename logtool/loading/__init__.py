"""The loading of one log as a broker does it, on a shadow of its directory.

loaded        what loading needs to be told, and what comes of it: plain data
shadow        a picture of the directory, which the steps change and the disk does not see
loader        the steps of ``LogLoader.load`` in their order
strategy      how segments are recovered: what a strategy decides, and a broker's way
leftovers     what an interrupted job left, and swaps that were committed
segments      one segment in the shadow               reading    what a broker reads of it
recovery      one segment read from its first byte    splitting  one that is split for it
indexing      its offset index and its time index
cuts          the files of a segment when it was recovered, and what goes where it is cut
truncating    a log that is to end at an offset
unsound       what a batch held that cannot be read
zombies       segments that a truncation had removed, and segments that overlap
epochs        leader epochs                           producers  producer state and snapshots
supplement    another strategy: what is believable stays and is added to
believable    which prefix of an index that is        holding    its entries against the log
replaying     from which snapshot on
trusting      the same where no log is checked        played     one segment, headers read alone
headers       headers alone, one behind the other     playback   the checkpoints, where it starts
metadata_log  what keeps a metadata log from being loaded
actions       what was done, in words
"""
