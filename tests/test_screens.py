import pytest
from screens import KEPT, SCREENS, prepare, screen, steady


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a directory with the log dirs of the screens."""
    path = tmp_path_factory.mktemp("screens")
    prepare(path)
    return path


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_shown_as_it_is_kept(home, name):
    shown = screen(SCREENS[name], home)
    assert steady(shown) == steady((KEPT / f"{name}.txt").read_text())


def test_at_most_a_dozen_screens_are_kept():
    kept = sorted(path.stem for path in KEPT.glob("*.txt"))
    assert kept == sorted(SCREENS)
    assert len(kept) <= 12
