"""The file formats of a Kafka log directory: bytes in, values out; no path, no print, no policy."""
