import pytest
from terminal import LOGTOOL, shown_on

from logtool.findings import REACTIONS, catalogue


def test_every_code_is_listed_with_severity_broker_and_title(run):
    result = run("explain")
    assert result.status == 0
    for code, rule in catalogue().items():
        (line,) = [line for line in result.lines if line.split()[:1] == [code]]
        assert line.split()[1:4] == [rule.severity, rule.broker, rule.remedy]
        assert line.endswith(rule.title)


@pytest.mark.parametrize("code", catalogue())
def test_a_code_is_explained_in_full(run, code):
    result = run("explain", code)
    rule = catalogue()[code]
    assert (result.status, result.lines[0]) == (0, f"{code}: {rule.title}")
    (line,) = (line for line in result.lines if line.startswith("Severity: "))
    assert all(word in line for word in (rule.severity, rule.broker, rule.remedy))
    assert all((f"What {REACTIONS[role]}\n" in result.stdout) == (role in rule.broker_does)
               for role in REACTIONS)  # fmt: skip
    for heading, part in (
        ("What it means", rule.meaning),
        *((f"What {REACTIONS[role]}", text) for role, text in rule.broker_does.items()),
        ("What to do", rule.action),
    ):
        assert f"\n{heading}\n" in result.stdout
        assert " ".join(part.split()) in " ".join(result.stdout.split())


@pytest.mark.parametrize("format", ["ndjson", "csv", "tsv", "markdown"])
def test_the_catalogue_comes_in_every_format(run, format):
    assert run("explain", "-f", format).stdout.count("batch/crc") >= 1
    assert run("explain", "batch/crc", "-f", format).status == 0


@pytest.mark.parametrize("typo", ["batch/crx", "batch-crc", "crc", "nothing/like-it"])
def test_a_typo_gets_suggestions_or_the_way_to_the_list(run, typo):
    result = run("explain", typo)
    assert (result.status, result.stdout) == (2, "")
    assert "batch/crc" in result.stderr or "'logtool explain'" in result.stderr


def test_the_object_of_a_code_has_each_reaction_as_a_key(run):
    (obj, _) = run("explain", "batch/crc", "-f", "ndjson").objects
    said = catalogue()["batch/crc"].broker_does
    assert {role: obj[role] for role in REACTIONS if obj[role] is not None} == said
    assert set(said) == set(REACTIONS)


@pytest.mark.parametrize(("width", "widest"), [(60, 60), (80, 80), (200, 88)])
def test_a_page_is_as_wide_as_the_terminal_up_to_88_columns(child_environment, width, widest):
    status, shown = shown_on(width, [LOGTOOL, "explain", "batch/crc"], child_environment())
    longest = max(map(len, shown.split("\n")))
    assert (status, widest - 8 < longest <= widest) == (0, True)


def test_a_page_in_a_pipe_is_80_columns_wide(spawn):
    longest = max(map(len, spawn("explain", "batch/crc").lines))
    assert 72 < longest <= 80
