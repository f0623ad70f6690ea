from pathlib import Path

from lint_asserts import half_asserts, main


def test_an_assert_that_compares_in_its_message_is_found():
    source = "\n".join((
        "assert topic, partition == ('orders', 0)",
        "assert (topic, partition) == ('orders', 0)",
        "assert topic == 'orders', f'{partition}'",
        "assert topic, partition == 0 and offset",
        "assert partition == 0, topic or None",
    ))  # fmt: skip
    assert list(half_asserts(source)) == [1, 4]


def test_no_test_of_ours_has_one(tmp_path, capsys):
    assert main([str(Path(__file__).parent)]) == 0
    (tmp_path / "test_one.py").write_text("def test():\n    assert 1, 2 == 3\n")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith(f"{tmp_path}/test_one.py:2: ")
