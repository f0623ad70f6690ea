"""Add up JUnit reports for CI: prints how many tests ran, and fails when any was skipped."""

import sys
import xml.etree.ElementTree as ET


def main(reports: list[str]) -> int:
    ran = failed = 0
    skipped: list[str] = []
    for report in reports:
        for case in ET.parse(report).getroot().iter("testcase"):
            ran += 1
            failed += case.find("failure") is not None or case.find("error") is not None
            skip = case.find("skipped")
            if skip is not None:
                why = skip.get("message")
                skipped.append(f"{case.get('classname')}::{case.get('name')}: {why}")
    for line in skipped:
        print(f"skipped: {line}")
    print(f"{ran - failed - len(skipped)} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed or skipped or not ran else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
