"""The small text files next to the logs: shown, mended from the logs, and changed row by row."""
