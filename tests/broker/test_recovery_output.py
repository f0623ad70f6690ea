"""What a broker and its JVM tell of loading, and what counts as agreement (no broker needed)."""

from __future__ import annotations

from broker import recovery
from broker.agreement import normal


def test_an_exception_is_told_by_the_name_of_its_log_dir_and_once() -> None:
    lines = (
        "Exception <a 'java/lang/Error'{0x01}: why> \n thrown in interpreter method <{method} "
        "{0x7f} '$anonfun$loadLogs$15' '()V' in 'kafka/log/LogManager'>\n at bci 47 for thread "
        "0x0a (log-recovery-/tmp/a b-0)\n"
        "Exception <a 'java/lang/Error'{0x01}: why> \n thrown in interpreter method <{method} "
        "{0x7f} 'call' '()V' in 'java/util/concurrent/FutureTask'>\n at bci 4 "
        "for thread 0x0a (log-recovery-/tmp/a b-0)\n"
    )
    (thrown,) = recovery._errors(lines)["/tmp/a b"]
    assert thrown.error == "java.lang.Error: why"
    assert thrown.uncaught


def test_padding_deleted_files_and_the_order_of_nothing_else_are_left_out() -> None:
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
