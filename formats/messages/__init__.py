"""The messages that Kafka writes as values of its internal topics, decoded."""
