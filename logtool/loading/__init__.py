"""What a broker does to a partition directory when it loads the log: carried out on a shadow."""
