"""The log dir that the tests of this folder have killed, filled up and put back."""

import os

import pytest
from changes import Place


@pytest.fixture
def place(template, tmp_path, monkeypatch):
    """Return a place where a log dir is changed, and `reset` again and again.

    A process that dies loses nothing that it wrote, so that fsync, which is slow, may be left out.
    """
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    return Place(template, tmp_path)
