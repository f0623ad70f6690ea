"""The log dir that the tests of this folder have killed, filled up and put back."""

from pathlib import Path

import pytest
from changes import Place

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the tests of this folder to `make test-kills`."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.kills)


@pytest.fixture
def place(template, tmp_path):
    """Return a place where a log dir is changed, and `reset` again and again."""
    return Place(template, tmp_path)
