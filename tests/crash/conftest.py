"""The log dir that the tests of this folder have killed, filled up and put back."""

import pytest
from changes import Place, make_log_dir


@pytest.fixture(scope="session")
def template(scenario, tmp_path_factory):
    """Return a log dir that is copied and not changed."""
    return make_log_dir(scenario("4.3.1/killed"), tmp_path_factory.mktemp("crash") / "template")


@pytest.fixture
def place(template, tmp_path):
    """Return a place where a log dir is changed, and `reset` again and again."""
    return Place(template, tmp_path)
