"""The log dirs of `make demo`: of real brokers, and one of them damaged."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data" / "4.3.1"
DEMO = ROOT / "build" / "demo"


def main() -> None:
    shutil.rmtree(DEMO, ignore_errors=True)
    DEMO.mkdir(parents=True)
    for name in ("clean", "killed"):
        with tarfile.open(DATA / f"{name}.tar.xz") as tar:
            tar.extractall(DEMO, filter="tar")
    with tarfile.open(DATA.parent / "automq" / "broker-crash.tar.xz") as tar:
        tar.extractall(DEMO, filter="tar")
    (DEMO / "broker-crash").rename(DEMO / "automq")
    shutil.copytree(DEMO / "clean", DEMO / "damaged")
    damage(DEMO / "damaged")
    flip(DEMO / "killed")
    show("A data directory as Kafka 4.3.1 left it:", "verify", "clean", expected=0)
    title = "The same directory after a bad night (one bit, one index, one checkpoint):"
    show(title, "verify", "damaged", expected=1)
    title = "What its next start does to one that was killed, with one bit wrong:"
    show(title, "plan", "killed", expected=1)


def flip(log_dir: Path) -> None:
    """Flip a bit in the middle of a log."""
    log = log_dir / "codec-none-0" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0x01
    log.write_bytes(data)


def damage(log_dir: Path) -> None:
    """Flip a bit in the middle of a log, empty an index, and move a high watermark."""
    flip(log_dir)
    index = next((log_dir / "index.dense-0").glob("*.index"))
    index.write_bytes(index.read_bytes()[:-3])
    checkpoint = log_dir / "replication-offset-checkpoint"
    text = checkpoint.read_text()
    checkpoint.write_text(text.replace("codec-zstd 0 ", "codec-zstd 0 9"))


def show(title: str, command: str, name: str, expected: int) -> None:
    print(f"\n{title}\n$ logtool {command} build/demo/{name}", flush=True)
    logtool = Path(sys.executable).parent / "logtool"
    done = subprocess.run([logtool, command, f"build/demo/{name}"], cwd=ROOT, check=False)
    print(f"exit status {done.returncode}", flush=True)
    if done.returncode != expected:
        sys.exit(f"expected exit status {expected}")


if __name__ == "__main__":
    main()
