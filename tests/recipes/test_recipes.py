"""An operator sees in each incident the figures of the screens in ``screens/``."""

from pathlib import Path

import pytest
from recipes import playing
from recipes.incidents import INCIDENTS

SCREENS = [
    pytest.param(*one, marks=() if one[1] == playing.WIDTH else pytest.mark.long)
    for one in playing.screens()
]


@pytest.mark.parametrize(("name", "width", "coloured"), SCREENS, ids=str)
def test_a_recipe_shows_what_its_screen_holds(name: str, width: int, coloured: bool) -> None:
    played = playing.play(name, width, coloured=coloured)
    kept = playing.kept(name, width, coloured).read_text()
    assert playing.figures(playing.steady(played.screen)) == playing.figures(kept)
    assert ("\x1b[" in played.screen) == ("\x1b[" in kept) == coloured
    whole = " ".join(played.screen.split())
    assert [words for words in playing.said(name) if words not in whole] == []
    assert played.commands <= 2


def test_every_script_is_played_and_every_screen_is_of_one() -> None:
    here = Path(playing.__file__).parent
    assert sorted(path.stem for path in here.glob("*.sh")) == sorted(INCIDENTS)
    assert sorted(playing.SCREENS.iterdir()) == sorted(
        playing.kept(*one) for one in playing.screens()
    )
