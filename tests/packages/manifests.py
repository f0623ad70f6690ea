"""The Kubernetes manifests of the guide logtool-install, and their validation."""

import re
import sys
from pathlib import Path

from packages.building import ROOT, environment, run

GUIDE = ROOT / "man" / "logtool-install.md"
_VALIDATOR = "kubernetes-validate>=1.31"


def blocks() -> list[str]:
    """Return the YAML blocks of the guide."""
    return re.findall(r"^```yaml\n(.*?)^```", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def validate(work: Path) -> int:
    """Validate the manifests against the schemas of Kubernetes; return their number."""
    bin_dir = environment(sys.executable, work / "kubernetes", _VALIDATOR)
    for number, text in enumerate(blocks()):
        path = work / f"manifest-{number}.yaml"
        path.write_text(text)
        run(bin_dir / "kubernetes-validate", "--strict", path)
    return len(blocks())
