# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs tools/dev/check_includes on small trees: a good tree passes, and each broken rule is reported.
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "dev" / "check_includes"
SPDX = "SPDX-FileCopyrightText: 2026 The oscar authors\n{0} SPDX-License-Identifier: Apache-2.0\n"
CPP = "// " + SPDX.format("//")
HASH = "# " + SPDX.format("#")

GOOD = {
    "linalg/CMakeLists.txt": HASH + "add_library(a a.cc)\n",
    "linalg/a.h": CPP,
    "linalg/a.cc": CPP + '#include "linalg/a.h"\n#include <lapacke.h>\n#include <vector>\n',
    "capture/model/CMakeLists.txt": HASH + "file(GLOB f ${CMAKE_CURRENT_SOURCE_DIR}/families/*.cc)\n",
    "capture/model/families/m.cc": CPP + '#include <ATen/ATen.h>\n#include "linalg/a.h"\n',
    "calib/c.h": CPP + '#include "linalg/a.h"\n',
    "tools/cli/option.h": CPP + "#include <CLI/CLI.hpp>\n",
    "tests/linalg/a_test.cc": CPP + '#include <gtest/gtest.h>\n#include <hdf5.h>\n#include "calib/c.h"\n',
    "tests/linalg/CMakeLists.txt": HASH + "oscar_test(SOURCES a_test.cc)\n",
    "tests/data/long.txt": "no header\n" * 500,
    ".ci/run": "#!/bin/sh\n" + HASH,
}


class CheckIncludes(unittest.TestCase):
    def run_check(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**GOOD, **changes}.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def refused(self, changes, finding):
        code, lines = self.run_check(changes)
        self.assertEqual(code, 1)
        self.assertIn(finding, lines)
        self.assertEqual(len(lines), 2, lines)  # the finding and the count, nothing else

    def test_good_tree_passes(self):
        self.assertEqual(self.run_check({}), (0, ["check_includes: 10 files, 0 findings"]))

    def test_empty_tree_fails(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True,
                                            check=False).returncode, 1)

    def test_direction(self):
        self.refused({"linalg/a.h": CPP + '#include "calib/c.h"\n'},
                     'linalg/a.h:3: "calib/c.h": linalg stands below calib and may not include it')
        self.refused({"capture/files/f.h": CPP + '#include "capture/model/m.h"\n', "capture/model/m.h": CPP},
                     'capture/files/f.h:3: "capture/model/m.h": capture/files stands below capture/model and may not '
                     "include it")
        self.refused({"tools/cli/x.h": CPP + '#include "tools/input/y.h"\n', "tools/input/y.h": CPP},
                     'tools/cli/x.h:3: "tools/input/y.h": tools/cli stands below tools/input and may not include it')
        self.refused({"calib/c.h": CPP + '#  include  "tests/support/t.h"\n', "tests/support/t.h": CPP},
                     'calib/c.h:3: "tests/support/t.h": calib stands below tests and may not include it')

    def test_third_parties(self):
        for header, folder in [("ATen/ops/cat.h", "capture/text"), ("torch/torch.h", "export/formats"),
                               ("c10/core/Device.h", "linalg"), ("caffe2/x.h", "tools/zoo"), ("hdf5.h", "calib"),
                               ("cuda_runtime.h", "capture/model"), ("cublas_v2.h", "calib"),
                               ("yaml-cpp/yaml.h", "calib"), ("CLI/CLI.hpp", "export/artifact"),
                               ("spdlog/spdlog.h", "linalg"), ("lapacke.h", "calib"), ("gtest/gtest.h", "tools/zoo"),
                               ("pcre2.h", "capture/text"), ("openssl/evp.h", "tools/zoo")]:
            code, lines = self.run_check({folder + "/bad.h": CPP + f"#include <{header}>\n"})
            self.assertEqual(code, 1, header)
            self.assertTrue(lines[0].startswith(f"{folder}/bad.h:3: <{header}> is allowed only in "), lines)

    def test_quoted_includes_start_at_the_root(self):
        self.refused({"linalg/b.h": CPP + '#include "a.h"\n'},
                     'linalg/b.h:3: "a.h" is not written from the repository root; third parties stand in <>')
        self.refused({"linalg/b.h": CPP + '#include "linalg/missing.h"\n'},
                     'linalg/b.h:3: "linalg/missing.h" does not exist')

    def test_every_source_is_built(self):
        self.refused({"linalg/b.cc": CPP}, "linalg/b.cc:1: no CMakeLists.txt builds this file")
        self.refused({"linalg/CMakeLists.txt": HASH + "# a.cc\n"}, "linalg/a.cc:1: no CMakeLists.txt builds this file")

    def test_headers(self):
        self.refused({"linalg/b.h": "// nothing\n// SPDX-License-Identifier: Apache-2.0\n"},
                     "linalg/b.h:1: no 'SPDX-FileCopyrightText:' at the top")
        self.refused({"tools/check": "#!/bin/sh\n# SPDX-FileCopyrightText: x\n"},
                     "tools/check:1: no 'SPDX-License-Identifier: Apache-2.0' at the top")

    def test_long_files_say_why(self):
        self.refused({"linalg/b.h": CPP + "\n" * 399},
                     "linalg/b.h:401: 401 lines; split it, or say at the top: Longer than 400 lines because ...")
        self.assertEqual(self.run_check({"linalg/b.h": CPP + "\n" * 398})[0], 0)
        self.assertEqual(self.run_check({"linalg/b.h": CPP + "// Longer than 400 lines because it is a table.\n" +
                                         "\n" * 400})[0], 0)

    def test_unknown_folders(self):
        self.refused({"export/elsewhere/x.h": CPP}, "export/elsewhere/x.h:1: is in no folder of tools/dev/check_includes")


if __name__ == "__main__":
    unittest.main()
