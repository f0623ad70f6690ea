import pytest

from logtool.formats import clean_shutdown

ON_DISK = b'{"version":0,"brokerEpoch":12345}'


@pytest.mark.parametrize(
    ("data", "broker_epoch"),
    [(b"", None), (ON_DISK, 12345), (ON_DISK + b"\n", 12345), (b'{"brokerEpoch":-1}', -1)],
)
def test_an_empty_file_and_json_are_sound(data: bytes, broker_epoch: int | None) -> None:
    marker = clean_shutdown.parse(data)
    assert marker.broker_epoch == broker_epoch
    assert list(clean_shutdown.check(marker)) == []


@pytest.mark.parametrize(
    "damaged",
    [
        *(ON_DISK[:size] for size in range(1, len(ON_DISK))),
        bytes(33),
        b"[]",
        b"null",
        b'{"version":0}',
        b'{"brokerEpoch":true}',
        b'{"brokerEpoch":1.5}',
        b'{"brokerEpoch":NaN}',
        b'{"brokerEpoch":9223372036854775808}',
        b'{"brokerEpoch":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b"\xff" + ON_DISK,
    ],
)
def test_content_without_a_broker_epoch_is_one_finding(damaged: bytes) -> None:
    (found,) = clean_shutdown.check(clean_shutdown.parse(damaged))
    assert (found.code, found.position, found.length) == (
        "clean-shutdown/malformed",
        0,
        len(damaged),
    )
