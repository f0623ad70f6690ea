"""The corpus of the fuzzer and inputs close to it have every property."""

import random

import pytest
from fuzz import targets
from fuzz.seeds import CORPUS, LARGEST

TARGETS = targets.all_targets()
NEAR = 60
"""Mutations of each input."""


def mutated(draw: random.Random, data: bytes) -> bytes:
    """Return the data after one to four changes like those of a fuzzer."""
    out = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(out) + 1)
        match draw.randrange(5):
            case 0:
                del out[at : at + draw.randint(1, 8)]
            case 1:
                out[at:at] = draw.randbytes(draw.randint(1, 8))
            case 2:
                out[at : at + 1] = bytes(
                    [draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))]
                )
            case 3:
                out[at : at + 4] = draw.choice((b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 4))
            case _:
                out += out[at : at + draw.randint(1, 40)]
    return bytes(out)


def test_every_target_has_a_corpus_and_every_corpus_a_target():
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_and_inputs_close_to_it_have_every_property(name):
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    for path in inputs:
        data = path.read_bytes()
        assert len(data) <= LARGEST
        TARGETS[name](data)
        draw = random.Random(path.name)
        for number in range(NEAR):
            changed = mutated(draw, data)
            try:
                TARGETS[name](changed)
            except Exception as error:
                raise AssertionError(f"{path.name}, change {number}: {changed!r}") from error
