"""The metadata log as an image of everything that is known of a cluster.

image       the image that the newest snapshot and the log behind it give
state       what an image holds, and what is asked of it
replay      what each record changes, and which do not apply
reading     the records, one after the other
entities    what an image holds, thing by thing
history     what each record changed
difference  what differs between two images
policies    which topics were ever compacted, as far back as the log goes
settings    what topics are set to, by the image and the broker's own file
releases    which releases of Kafka a log dir shows
"""
