"""The metadata log as an image of topics, partitions, brokers and settings.

image              the image that the newest snapshot and the log behind it give
state              the objects of an image, and its queries
replay             the change that each record makes, and the records that do not apply
other_records      the changes of the other records
streams            the streams and objects of AutoMQ
reading            the records, one after the other
entities           the objects of an image, one by one, for printing
history            the change of each record, for printing
difference         the differences between two images
automq_partitions  the partitions of AutoMQ in a bucket
automq_tree        a bucket of AutoMQ shown as a log dir of Kafka
bootstrap          ``bootstrap.checkpoint`` as a node reads it at its start
policies           the topics that were ever compacted, as far back as the log goes
setting_values     values of settings, each with its source
log_start          the log start offset of a partition, also with segments in remote storage
releases           the releases of Kafka, what each supports, and which a log dir shows
"""
