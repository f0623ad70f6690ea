"""The metadata log as an image of topics, partitions, brokers and configurations.

image     the image that the newest snapshot and the log behind it give
releases  which releases of Kafka a log dir shows
"""
