"""The messages that brokers keep in their own topics and files.

``tables``           their fields, as the released jars have them (`make messages` writes them)
`schema`             what a table says
`codec`              one decoder and one encoder for all of them
`internal_topics`    keys and values of records, by topic
`settings`           the settings whose values are not sensitive
`secrets`            the fields of records that are secret
`cluster_metadata`   the records that the image of the cluster is made of
`remote_log`         events of remote log segments
"""
