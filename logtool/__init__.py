"""The engine of logtool: judgement over the bytes that `logtool.formats` decodes."""

__version__ = "0.1.0"
