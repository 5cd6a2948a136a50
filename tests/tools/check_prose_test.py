# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs tools/dev/check_prose on small repositories: sentences pass; headless comments and long subjects are refused.
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "dev" / "check_prose"


def run_check(files, subjects=()):
    """Commits each subject after the commit that adds tools/dev/check_prose; returns the findings."""
    with tempfile.TemporaryDirectory() as root:
        def git(*arguments):
            subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True,
                           capture_output=True)
        git("init")
        git("commit", "--allow-empty", "-m", "x" * 100)
        for name, text in {**files, "tools/dev/check_prose": ""}.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        git("add", ".")
        git("commit", "-m", "y" * 100)
        for subject in subjects:
            git("commit", "--allow-empty", "-m", subject)
        done = subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.stderr == "" and done.returncode == (len(lines) > 1), done
    return lines[:-1]


class CheckProse(unittest.TestCase):
    def test_sentences_pass(self):
        self.assertEqual(run_check({
            "linalg/a.h": "// Returns the sum. Of these, two are odd.\n// Where it ends.\nint x;  // of a row\n"
                          "// Where a group\n// has no range, its values become 0.\nfloat y;\n",
            "linalg/a.py": "# Often\nx = '# Of'\n"}), [])

    def test_headless_comments(self):
        for text in ["Of a warp's tile.", "Whose tokens count", "Behind the last layer: x, y", "What is left of it.",
                     "Who reads it, and why.", "Where the rows of x are. Then, others."]:
            finding = f'linalg/sub/a.cuh:2: "{text[:40]}" begins with a clause; name the subject'
            self.assertEqual(run_check({"linalg/sub/a.cuh": f"int x;\n// {text}\n"}), [finding])
            self.assertEqual(run_check({"linalg/sub/a.cuh": f"\nint x;  // {text}\n"}), [finding])
        self.assertEqual(len(run_check({"linalg/a.cmake": "# Of it.\n", "linalg/a.sh": "true  #" + " What it is\n"})), 2)

    def test_unlisted_folders_are_not_read(self):
        self.assertEqual(run_check({"other/a.h": "// Of it.\n"}), [])

    def test_subjects_since_the_check_was_added(self):
        self.assertEqual(run_check({}, ["z" * 72]), [])
        findings = run_check({}, ["z" * 73, "short"])
        self.assertEqual(len(findings), 1)
        self.assertIn("the subject has 73 characters, at most 72 are allowed", findings[0])


if __name__ == "__main__":
    unittest.main()
