# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs tools/dev/count_skipped on small logs.
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "tools" / "dev" / "count_skipped"
LOG = """1/9 Testing: Chromium.ShowsEveryPage
Output:
/source/chromium_test.cc:78: Skipped
package chromium is not installed: tools/setup.sh --tests

[  SKIPPED ] Chromium.ShowsEveryPage (3 ms)
/source/a_test.cc:5: Skipped
OSCAR_TEST_PACKS is not set: needs hostile_inputs

/source/b_test.cc:7: Skipped
OSCAR_TEST_PACKS is not set: needs models

check_format: Skipped
package clang-format-14 is not installed: tools/setup.sh --tests
1 test Skipped
"""


class CountSkipped(unittest.TestCase):
    def count(self, log, unavailable=None):
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            (scratch / "log").write_text(log)
            if unavailable is not None:
                (scratch / "unavailable").write_text(unavailable)
            run = subprocess.run([PROGRAM, scratch / "log", scratch / "unavailable"], capture_output=True, text=True)
        self.assertEqual(run.stderr, "")
        return run.returncode, run.stdout

    def test_counts_by_reason(self):
        _, out = self.count(LOG)
        self.assertIn("skipped tests: 4\n  2 x OSCAR_TEST_PACKS is not set\n", out)

    def test_a_package_that_a_registry_has_is_an_error(self):
        status, out = self.count(LOG, "chromium: apt offers none\n")
        self.assertEqual(status, 1)
        self.assertIn("were not installed: clang-format-14.", out)
        self.assertIn("tests (apt offers none)\n", out)

    def test_packages_that_no_registry_offers_are_said_and_excused(self):
        status, out = self.count(LOG, "chromium: apt offers none\nclang-format-14: apt does not answer\n")
        self.assertEqual(status, 0)
        self.assertIn("1 x package clang-format-14 is not installed: tools/setup.sh --tests (apt does not answer)\n", out)

    def test_nothing_skipped(self):
        self.assertEqual(self.count("all ran\n"), (0, "skipped tests: 0\n"))


if __name__ == "__main__":
    unittest.main(verbosity=0)
