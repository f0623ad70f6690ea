"""Records that the producers of the command line read from their input, by their source."""

import shlex

Pair = tuple[bytes | None, bytes | None]
Line = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def as_kcat(data: bytes, command: str) -> list[Pair]:
    """Return the keys and values that kcat makes of its input: `producer_run` of kcat 1.7.1."""
    words = shlex.split(command)

    def delimiter(option: str) -> bytes:
        text = words[words.index(option) + 1]
        return text.encode().decode("unicode_escape").encode("latin-1")

    end, between, nulls = delimiter("-D"), delimiter("-K"), "-Z" in words
    found: list[Pair] = []
    for message in data.split(end):
        key, separator, value = message.partition(between)
        if not message:
            continue
        if not separator:
            found.append((None, message))
        else:
            found.append((key or (None if nulls else b""), value or (None if nulls else b"")))
    return found


def as_console_producer(data: bytes, command: str) -> list[Line]:
    """Return key, value and headers of each line: `LineMessageReader` of Kafka 4.x."""
    words = [word for word in shlex.split(command) if "=" in word]
    assert words[:2] == ["parse.key=true", "parse.headers=true"]
    marker = words[2].removeprefix("null.marker=")

    def content(text: str) -> bytes | None:
        return None if text == marker else text.encode()

    found: list[Line] = []
    lines = data.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert lines.pop() == ""
    for line in lines:
        headers, key, value = line.split("\t", 2)
        pairs = [] if headers == marker else [pair.split(":", 1) for pair in headers.split(",")]
        assert all(name != marker for name, _ in pairs)
        found.append((content(key), content(value), [(n, content(text)) for n, text in pairs]))
    return found
