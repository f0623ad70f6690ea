"""Outcomes from the logs of a broker and its JVM, and their comparison (no broker needed)."""

from __future__ import annotations

from broker import recovery
from broker.agreement import normal


def thrown(address: int, method: str) -> str:
    thrown = f"Exception <a 'java/lang/Error'{{0x{address:08x}}}: why > so>\n thrown in interpreter"
    thread = "at bci 47 for thread 0x0a (log-recovery-/tmp/a b-0)"
    return f"{thrown} method <{{method}} {{0x7f}} {method}>\n {thread}\n"


def test_an_exception_counts_once_for_its_log_dir() -> None:
    load_log = "'loadLog' '(Ljava/io/File;ZLjava/util/Map;"
    load_logs = "'$anonfun$loadLogs$15' '(Lkafka/log/LogManager;Ljava/io/File;"
    run = "'run' '()V' in 'java/util/concurrent/FutureTask'"
    one = thrown(1, load_log) + thrown(1, load_logs) + thrown(2, load_logs) + thrown(2, run)
    caught = thrown(3, load_log) + thrown(3, load_logs)
    found = recovery._errors(one + one + caught)["/tmp/a b"]
    assert [thrown.error for thrown in found] == ["java.lang.Error: why > so"] * 3
    assert [thrown.uncaught for thrown in found] == [True, True, False]


def test_padding_and_deleted_files_are_not_compared() -> None:
    first, last = "00000000000000000000", "00000000000000000007"
    entry = b"\0\0\0\1\0\0\1\0"
    files = {
        f"{first}.log": b"log",
        f"{first}.index": entry + bytes(8),
        f"{last}.log": b"",
        f"{last}.index": entry + bytes(80),
        f"{last}.timeindex": bytes(84),
        "00000000000000000003.log.deleted": b"gone",
        "leader-epoch-checkpoint": b"0\n0\n",
    }
    assert normal(files) == {
        f"{first}.log": b"log",
        f"{first}.index": entry + bytes(8),
        f"{last}.log": b"",
        f"{last}.index": entry,
        f"{last}.timeindex": b"",
        "leader-epoch-checkpoint": b"0\n0\n",
    }
