from lint_asserts import MOST, half_asserts, main, sentences


def test_an_assert_that_compares_in_its_message_is_found():
    lines = [
        "assert topic, partition == ('orders', 0)",
        "assert (topic, partition) == ('orders', 0)",
        "assert topic == 'orders', f'{partition}'",
        "assert topic, partition == 0 and offset",
        "assert partition == 0, topic or None",
    ]
    assert list(half_asserts("\n".join(lines))) == [1, 4]


def test_an_assert_that_pins_a_sentence_is_found_however_it_is_written():
    source = "\n".join((
        "assert line == 'the log ends at offset 12'",
        "assert line == 'the log ' + f'ends at {offset} here'",
        "LINES = ('one', 'the first segment is not there')",
        "assert line in LINES",
        "with raises(ValueError, match='the file ends within a row'): pass",
        "assert ' '.join(['the log', 'ends at', 'offset 12']) == line",
        "assert line == 'log-end 12 13 14 15 16'",
        "print('the log ends at offset 12')",
    ))  # fmt: skip
    assert sorted(sentences(source)) == [1, 2, 4, 5, 6]


def test_half_asserts_and_too_many_sentences_end_the_run_with_1(tmp_path, capsys):
    (tmp_path / "test_one.py").write_text("def test():\n    assert (1, 2) == (3, 4)\n")
    assert main([str(tmp_path)]) == 0
    (tmp_path / "test_one.py").write_text("def test():\n    assert 1, 2 == 3\n")
    assert main([str(tmp_path)]) == 1
    assert f"{tmp_path}/test_one.py:2: " in capsys.readouterr().out
    (tmp_path / "test_one.py").write_text(
        "assert line == 'the log ends at offset 12'\n" * (MOST + 1)
    )
    assert main([str(tmp_path)]) == 1
