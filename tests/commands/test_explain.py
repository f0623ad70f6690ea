import pytest

from logtool.findings import catalogue


def test_every_code_is_listed_with_severity_broker_and_title(run):
    result = run("explain")
    assert result.status == 0
    for code, rule in catalogue().items():
        (line,) = [line for line in result.lines if line.split()[:1] == [code]]
        assert line.split()[1:3] == [rule.severity, rule.broker]
        assert line.endswith(rule.title)


@pytest.mark.parametrize("code", catalogue())
def test_a_code_is_explained_in_full(run, code):
    result = run("explain", code)
    rule = catalogue()[code]
    assert (result.status, result.lines[0]) == (0, f"{code}: {rule.title}")
    (line,) = (line for line in result.lines if line.startswith("Severity: "))
    assert (rule.severity in line, rule.broker in line) == (True, True)
    for heading, part in (
        ("What it means", rule.meaning),
        ("What a broker does", rule.broker_does),
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
