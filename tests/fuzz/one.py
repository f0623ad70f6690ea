"""Fuzz one target in this process, which libFuzzer ends: ``python -m fuzz.one TARGET ARGS...``."""

import sys

import atheris
from atheris.instrument_bytecode import patch_code

with atheris.instrument_imports(include=["logtool.formats", "logtool.log"]):
    from fuzz.targets import all_targets

if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    target = all_targets(lambda code: patch_code(code, trace_dataflow=True))[name]
    atheris.Setup([name, *arguments], target)
    atheris.Fuzz()
