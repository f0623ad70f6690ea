"""The rules of `verify`: each module judges one kind of file or one kind of bond between files."""
