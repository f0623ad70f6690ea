"""Fixtures of the tests of changes: a log dir that may be changed."""

import os

import pytest
from changes import Place, make_log_dir


@pytest.fixture(scope="session")
def template(scenario, tmp_path_factory):
    """Return a log dir that is copied and not changed."""
    return make_log_dir(scenario("4.3.1/killed"), tmp_path_factory.mktemp("apply") / "template")


@pytest.fixture
def place(template, tmp_path, monkeypatch):
    """Return a log dir to be changed, without fsync: no test here cuts the power."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    place = Place(template, tmp_path)
    place.reset()
    return place
