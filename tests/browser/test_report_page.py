"""The page of a report in a real Chromium: it fits, sorts and filters, and no script fails."""

import pytest
from report_pages import content_of, opened

from logtool.commands.views.report_page import page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
WIDTH = "document.documentElement.scrollWidth <= window.innerWidth"
ROWS = "Array.from(document.querySelectorAll('#finding-rows tbody tr')).filter(r => !r.hidden)"


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return a page with 10,000 findings."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(content_of(10_000)), "utf-8")
    return path


@pytest.mark.parametrize("width", [1280, 400])
def test_a_page_fits_and_no_script_fails(large, width):
    found, console = opened(large, width, f"return {{fits: {WIDTH}, rows: {ROWS}.length}};")
    assert found == {"fits": True, "rows": 500}
    assert console == []


def test_ten_thousand_findings_are_filtered_and_sorted(large):
    script = f"""
      const input = document.querySelector('input[type=search]');
      const infos = document.querySelector('input[type=checkbox]');
      const type = (text) => {{ input.value = text; input.dispatchEvent(new Event('input')); }};
      const found = {{}};
      infos.click();
      type('batch/crc message'); found.errors = document.querySelector('[data-count]').textContent;
      type('orders-7/'); found.one = {ROWS}.map(row => row.cells[4].textContent);
      type('');
      const head = document.querySelectorAll('#finding-rows th')[3];
      head.click(); found.least = {ROWS}[0].cells[3].textContent;
      head.click(); found.most = {ROWS}[0].cells[3].textContent;
      document.querySelector('.wide + button').click(); found.all = {ROWS}.length;
      infos.click(); found.without = {ROWS}.length;
      return found;
    """
    found, console = opened(large, 1280, script)
    assert console == []
    assert found == {
        "errors": "3,334 of 10,000 rows", "one": ["message 7"], "least": "0", "most": "9,999",
        "all": 10_000, "without": 6_667,
    }  # fmt: skip


def test_a_name_is_never_markup(tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page(content_of(3, "<img src=x onerror=alert(1)>'\"&")), "utf-8")
    found, console = opened(path, 1280, "return document.images.length;")
    assert (found, console) == (0, [])
