"""Fixtures of the tests of changes: a log dir that may be changed."""

import os

import pytest
from changes import Place


@pytest.fixture
def place(template, tmp_path, monkeypatch):
    """Return a log dir to be changed, without fsync: no test here cuts the power."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    place = Place(template, tmp_path)
    place.reset()
    return place
