"""The guide logtool-nightly: units, a line of cron and a job that name options that there are."""

import configparser
import re
import shlex

import pytest
import yaml  # type: ignore[import-untyped]
from readme import ROOT

from logtool.commands.program import parsing
from logtool.commands.views import metrics, scrub
from logtool.errors import UsageError

TEXT = (ROOT / "man" / "logtool-nightly.md").read_text()
SERVICE, TIMER = re.findall(r"```ini\n(.*?)```", TEXT, re.DOTALL)
JOB, RULES = (yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
CONTAINER = JOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]


def unit(text: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(text)
    return found


def commands() -> list[list[str]]:
    """Return the arguments of logtool in each command of the guide."""
    lines = [unit(SERVICE)["Service"]["ExecStart"], *re.findall("^(?:30 1|logtool).*$", TEXT, re.M)]
    words = [shlex.split(line) for line in lines if not line.startswith("logtool-")]
    found = [one[[word.endswith("logtool") for word in one].index(True) + 1 :] for one in words]
    return [*found, CONTAINER["args"]]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_each_command_has_options_that_there_are(run, words: list[str]) -> None:
    assert run(*words, "--help").status == 0
    assert run(*words, "--no-such-option", "--help").status == 2


def test_the_guide_has_a_command_for_each_way_to_run_it() -> None:
    assert len(commands()) == 5
    assert unit(TIMER)["Timer"]["Persistent"] == "yes"
    assert unit(SERVICE)["Service"]["SuccessExitStatus"] == "6"


def test_each_run_of_the_guide_ends_with_status_1_for_errors_alone() -> None:
    runs = [" ".join(one).replace("=", " ") for one in commands() if len(one) > 4]
    assert len(runs) == 4
    assert all("--fail-on error" in one for one in runs)


def test_each_volume_of_the_job_is_mounted_and_the_log_dir_only_for_reading() -> None:
    volumes = JOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]["volumes"]
    mounts = {one["name"]: one for one in CONTAINER["volumeMounts"]}
    assert mounts.keys() == {one["name"] for one in volumes}
    assert mounts["data"]["readOnly"] is True


def test_the_guide_and_its_alerts_name_the_metrics_that_there_are() -> None:
    source = "".join((ROOT / one.__file__).read_text() for one in (metrics, scrub))
    written = set(re.findall(r'"(logtool_[a-z_]+)"', source))
    rules = " ".join(one["expr"] for group in RULES["groups"] for one in group["rules"])
    used = set(re.findall(r"logtool_[a-z_]+", rules))
    assert used < written
    assert set(re.findall(r"`(logtool_[a-z_]+)[`{]", TEXT)) == written


@pytest.mark.parametrize(
    ("text", "seconds"), [("1500ms", 1.5), ("3s", 3), ("2m", 120), ("1d", 86400)]
)
def test_a_time_has_a_unit(text: str, seconds: float) -> None:
    assert parsing.parse_duration("--max-duration", text) == seconds


@pytest.mark.parametrize("text", ["1500mm", "sm", "0ms", "3 s s"])
def test_no_other_text_is_a_time(text: str) -> None:
    with pytest.raises(UsageError):
        parsing.parse_duration("--max-duration", text)
