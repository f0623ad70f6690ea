import numpy as np
import pytest

from logtool.repair.ordering import longest


@pytest.mark.parametrize(
    ("batches", "kept"),
    [
        # (first offset, last offset, leader epoch)
        ([(0, 4, 0), (5, 9, 0), (10, 14, 0)], "111"),
        ([(0, 4, 0), (1029, 1033, 0), (10, 14, 0), (15, 19, 0)], "1011"),
        ([(0, 4, 0), (5, 9, 0), (2, 6, 0), (15, 19, 0)], "1101"),
        ([(0, 4, 0), (7, 8, 0), (7, 14, 0), (15, 19, 0)], "1011"),
        ([(0, 4, 0), (5, 9, 0), (9, 13, 0), (15, 19, 0)], "1101"),
        ([(0, 4, 0), (5, 9, 16), (10, 14, 0), (15, 19, 1)], "1011"),
        ([(0, 4, -1), (5, 9, -1), (5, 9, -1)], "110"),
        ([(9, 4, 0)], "0"),
        ([], ""),
    ],
)
def test_the_most_batches_stay_that_agree_with_each_other(batches, kept):
    columns = np.array(batches, np.int64).reshape(-1, 3).T

    assert "".join(map(str, longest(*columns).astype(int).tolist())) == kept
