"""The loading of one log as a broker does it, on a shadow of its directory.

result            the request for a load and its result: plain data
shadow            a picture of the directory: the steps change it, and the disk stays as it is
loader            the steps of ``LogLoader.load`` in their order
strategy          how segments are recovered: the protocol, and the broker's way, a rebuild
leftovers         files of an interrupted cleaning or split, and swaps that are completed
segments          one segment in the shadow
kafka_reading     batches and leader epochs as a broker reads them
recovery          the recovery of one segment from its first byte
splitting         the split of a segment whose offsets do not fit
index_building    the offset index and the time index that a recovery builds
cuts              the files of a recovered segment, and what is removed where the log is cut
truncating        the truncation of a log to an offset
lost_records      records of batches that cannot be read
old_segments      segments that a truncation had removed, and segments that overlap
epochs            leader epochs
producers         producer state and its snapshots
supplement        the strategy that keeps valid indexes and adds to them
index_prefix      the prefix of an index that is valid
index_compare     entries of an index, compared with those that a rebuild would make
producer_replay   the snapshot from which the producer state is replayed
trusting          the strategy that trusts the log and reads headers alone
header_recovery   the recovery of one segment from its headers
header_walk       the headers of a log, one after the other
segment_twins     segments that hold the batches of another partition
replay_start      the checkpoints that say where such a recovery starts
metadata_log      faults that keep a metadata log from being loaded
release_support   the levels and records that the release does not support
clean_start       starts after a clean stop that fail at damage
actions           the changes and losses as `Action`s
"""
