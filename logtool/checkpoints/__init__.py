"""The small text files beside the logs: shown, mended from the logs, and changed row by row."""
