"""``verify --wrong-topic``."""

from logtool.formats import record


def test_a_batch_of_another_topic_is_a_warning_only_if_it_is_asked_for(run, tmp_path, make_batch):
    def write(name, *batches):
        home = tmp_path / "data" / name
        home.mkdir(parents=True)
        (home / f"{0:020d}.log").write_bytes(b"".join(batches))

    def batch(offset, sequence, time):
        sent = [record.Record(0, 0, None, str(sequence).encode())]
        return make_batch(offset, sent, producer_id=5, producer_epoch=0, base_sequence=sequence,
                          base_timestamp=time, max_timestamp=time)  # fmt: skip

    write("orders-0", *(batch(at, at, 1_000 + at) for at in range(4)))
    older = make_batch(0, [record.Record(0, 0, None, b"x")], base_timestamp=1, max_timestamp=1)
    write("payments-0", older, batch(1, 2, 1_002))
    words = ("verify", "-f", "ndjson", "--fail-on", "warning", tmp_path / "data")

    def found(*more):
        result = run(*words, *more)
        findings = [one for one in result.of_type("finding") if one["code"] == "batch/other-topic"]
        return [(one["topic"], one["first_offset"]) for one in findings], result

    assert found()[0] == []
    at, result = found("--wrong-topic")
    assert at == [("payments", 1)]
    assert (result.status, result.of_type("summary")[0]["findings"]["warning"] >= 1) == (1, True)
