"""Fixtures of the tests of changes: a log dir that may be changed."""

import pytest
from changes import Place


@pytest.fixture
def place(template, tmp_path):
    """Return a log dir to be changed."""
    place = Place(template, tmp_path)
    place.reset()
    return place
