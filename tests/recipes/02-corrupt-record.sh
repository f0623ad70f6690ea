# Incident: a consumer fails again and again at one offset: "Record is corrupt".
# Asked: where is the damage, what stands after it, and is the copy on the other broker sound there?
# Shows: batch/crc
# Shows: sound in 2
logtool verify data/codec-none-0
logtool diff 1=data/codec-none-0 2=other/codec-none-0
