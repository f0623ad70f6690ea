"""The log dir that the tests of this folder have killed, filled up and put back."""

import os

import pytest
from changes import Place, make_log_dir


@pytest.fixture(scope="session")
def template(scenario, tmp_path_factory):
    """Return a log dir that is copied and not changed."""
    return make_log_dir(scenario("4.3.1/killed"), tmp_path_factory.mktemp("crash") / "template")


@pytest.fixture
def place(template, tmp_path, monkeypatch):
    """Return a place where a log dir is changed, and `reset` again and again.

    A process that dies loses nothing that it wrote, so that fsync, which is slow, may be left out.
    """
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    return Place(template, tmp_path)
