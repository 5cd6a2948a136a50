// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pulls from a malicious zoo: paths, links, devices, names that some systems read differently, and
// unlimited sizes and counts. Each attack is refused, and no file outside the unfinished pull
// changes.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"
#include "zoo/keep/mirror.h"
#include "zoo/keep/publish.h"
#include "zoo/source/pull.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

struct Attack {
  std::string name;
  std::function<void(const fs::path& zoo, Json& entry)> prepare;
  std::string words;  // of the check under test; other checks would refuse with other words
};

// Returns the path of a file beside the zoo, to which attacks point and which must not be read or
// written.
fs::path Outside(const fs::path& zoo) { return zoo.parent_path() / "outside"; }

Attack FileName(const std::string& name, const std::string& file,
                const std::string& words = "0.1.0.json: file ") {
  return {"file_" + name,
          [=](const fs::path&, Json& entry) { entry["files"][file] = entry["files"][kReportFile]; },
          words};
}
Attack Digest(const std::string& name, const Json& digest,
              const std::string& words = "expected a SHA-256") {
  return {"digest_" + name,
          [=](const fs::path&, Json& entry) { entry["files"][kReportFile]["sha256"] = digest; },
          words};
}
Attack Size(const std::string& name, const Json& size, const std::string& words) {
  return {"size_" + name,
          [=](const fs::path&, Json& entry) { entry["files"][kReportFile]["size"] = size; }, words};
}
Attack Member(const std::string& name, const char* member, const Json& value,
              const std::string& words) {
  return {name, [=](const fs::path&, Json& entry) { entry[member] = value; }, words};
}
// Returns an attack that replaces the blob of report.json by what `make` creates.
Attack Blob(const std::string& name, const std::string& words,
            const std::function<void(const fs::path& blob)>& make) {
  return {"blob_" + name,
          [=](const fs::path& zoo, Json& entry) {
            const fs::path blob =
                BlobPath(zoo, entry["files"][kReportFile]["sha256"].get<std::string>());
            fs::copy(blob, zoo.parent_path() / "right");
            fs::remove(blob);
            make(blob);
          },
          words};
}
Attack Latest(const std::string& name, const char* member, const Json& value,
              const std::string& words) {
  return {"latest_" + name,
          [=](const fs::path& zoo, Json&) {
            EditJson(zoo / "entries/example/Tiny/latest.json",
                     [&](Json& latest) { latest[member] = value; });
          },
          words};
}

std::vector<Attack> Attacks() {
  using namespace std::string_literals;
  std::vector<Attack> attacks = {
      FileName("parent", "../outside"),
      FileName("parent_deep", "a/../../outside"),
      FileName("absolute", "/tmp/outside"),
      FileName("subfolder", "a/b"),
      FileName("dot", "."),
      FileName("dotdot", ".."),
      FileName("empty", ""),
      FileName("backslash", "..\\outside"),
      FileName("drive", "C:outside"),
      FileName("stream", "report.json::$DATA"),
      FileName("nul_byte", "outside\0.json"s),
      FileName("newline", "out\nside"),
      FileName("hidden", ".bashrc"),
      FileName("option", "-rf"),
      FileName("home", "~root"),
      FileName("trailing_dot", "report.json."),
      FileName("trailing_space", "report.json "),
      FileName("device_nul", "NUL"),
      FileName("device_con", "con.json"),
      FileName("device_com", "COM1.txt"),
      FileName("case_fold", "REPORT.json", "differing only in case"),
      FileName("cyrillic", "r\u0435port.json"),
      FileName("full_width_slash", "a\uFF0Fb"),
      FileName("division_slash", "..\u2215outside"),
      FileName("right_to_left", "nosj.\u202Etroper"),
      FileName("zero_width", "report\u200B.json"),
      FileName("combining", "re\u0301port.json"),
      FileName("kelvin", "\u212Aeys.json"),
      FileName("long_s", "\u017Fecret"),
      FileName("percent", "%2e%2e%2foutside"),
      FileName("too_long", std::string(97, 'a')),
      FileName("one_too_many_in_the_manifest", "extra.json", "is not listed in manifest.json"),
      Digest("path", "../../../outside"),
      Digest("absolute", "/etc/passwd"),
      Digest("upper_case", std::string(64, 'A')),
      Digest("short", std::string(63, 'a')),
      Digest("long", std::string(65, 'a')),
      Digest("prefix", "sha256:" + std::string(57, 'a')),
      Digest("nul", std::string(63, 'a') + '\0'),
      Digest("number", 7, "must be a string"),
      Digest("of_nothing_there", std::string(64, 'a'), "the source does not have it"),
      Size("negative", -1, "must be from 0"),
      Size("beyond_all", int64_t{1} << 60, "from 0 to 1 PiB"),
      Size("wraps", 18446744073709551615ULL, "a 64-bit integer"),
      Size("fraction", 1.5, "a 64-bit integer"),
      Size("text", "1", "a 64-bit integer"),
      Size("too_large", 1'000'000'000, "bytes, expected 1000000000"),
      Size("too_small", 1, "bytes, expected 1"),
      Size("zero", 0, "received data with SHA-256"),
      Member("name_of_another", "name", "example/Other", "the file describes example/Other@0.1.0"),
      Member("name_path", "name", "../outside", "is not ORG/MODEL"),
      Member("version_of_another", "version", "0.2.0", "the file describes example/Tiny@0.2.0"),
      Member("version_path", "version", "../../outside", "is not a version"),
      Member("identity_of_another", "identity", std::string(64, 'a'), "differs from the digest of"),
      Member("later_format", "$schema", {{"name", "oscar-zoo-entry"}, {"version", 2}},
             "a newer version of oscar may be able to read it"),
      Member("unknown_member", "run", "rm -rf /", "unknown member"),
      Member("another_model", "model", {{"id", "example/Other"}},
             "'model' differs from its manifest"),
      Member("better_numbers", "validation",
             {{"headline_arm", "oscar_per_head+clip+windows"},
              {"source", "model"},
              {"metrics", {{"kl", 0.0}}}},
             "'validation' differs from its report"),
      Latest("name", "name", "../outside", "latest.json: belongs to"),
      Latest("other_name", "name", "example/Other", "latest.json: belongs to"),
      Latest("version", "version", "../../outside",
             "latest.json: \"../../outside\" is not a version"),
      Latest("identity", "identity", "x", "expected a SHA-256"),
      Blob("link_out", "is a link that points outside the zoo",
           [](const fs::path& blob) {
             fs::create_symlink(Outside(blob.parent_path().parent_path().parent_path()), blob);
           }),
      Blob("right_bytes_by_a_link_out", "is a link that points outside the zoo",
           [](const fs::path& blob) {
             fs::create_symlink(
                 blob.parent_path().parent_path().parent_path().parent_path() / "right", blob);
           }),
      Blob("hard_link_of_another_file", "8 bytes, expected",
           [](const fs::path& blob) {
             fs::create_hard_link(Outside(blob.parent_path().parent_path().parent_path()), blob);
           }),
      Blob("folder", "is not a regular file",
           [](const fs::path& blob) { fs::create_directory(blob); }),
      Blob("pipe", "is not a regular file",
           [](const fs::path& blob) { mkfifo(blob.c_str(), 0666); }),
      Blob("device", "is a link that points outside the zoo",
           [](const fs::path& blob) { fs::create_symlink("/dev/zero", blob); }),
  };
  attacks.push_back({"too_many_files",
                     [](const fs::path&, Json& entry) {
                       for (int i = 0; i < 64; ++i)
                         entry["files"]["f" + std::to_string(i)] = entry["files"][kReportFile];
                     },
                     "files, expected at most"});
  attacks.push_back({"no_manifest",
                     [](const fs::path&, Json& entry) { entry["files"].erase(kManifestFile); },
                     "does not list manifest.json"});
  attacks.push_back({"a_file_is_left_out",
                     [](const fs::path&, Json& entry) { entry["files"].erase(kReportFile); },
                     "cannot open"});
  attacks.push_back({"files_change_places",
                     [](const fs::path&, Json& entry) {
                       std::swap(entry["files"][kReportFile], entry["files"][kCardFile]);
                     },
                     "but the manifest says"});
  return attacks;
}

class PullAttack : public testing::TestWithParam<Attack> {
 protected:
  PullAttack() : scratch_(TestScratch("attack")), zoo_(NewZoo(scratch_ / "zoo")) {
    WriteValidated(scratch_ / "a", 1);
    Publish(zoo_, scratch_ / "a", {}, {});
    fs::remove_all(scratch_ / "a");
    WriteText(Outside(zoo_.path()), "precious");
  }
  fs::path Entry() const { return zoo_.path() / "entries/example/Tiny/0.1.0.json"; }

  void ExpectRefused() {
    const auto before = TreeBytesBut("out");
    const ZooName name{"example", "Tiny"};
    EXPECT_TRUE(
        Says(ErrorOf<InputError>([&] { Pull(OpenSource(zoo_.path()), {name}, scratch_ / "out"); }),
             GetParam().words));
    EXPECT_FALSE(fs::exists(scratch_ / "out"));
    EXPECT_TRUE(TreeBytesBut("out") == before);
    EXPECT_FALSE(fs::exists("/tmp/outside"));
  }
  // Returns the regular files of the scratch folder, except those whose path begins with `prefix`.
  std::map<std::string, std::string> TreeBytesBut(const std::string& prefix) const {
    auto bytes = TreeBytes(scratch_);
    std::erase_if(bytes, [&](const auto& file) { return file.first.starts_with(prefix); });
    return bytes;
  }

  fs::path scratch_;
  Zoo zoo_;
};

TEST_P(PullAttack, IsRefusedAndNothingOutsideChanges) {
  Json entry = ReadJsonFile(Entry());
  GetParam().prepare(zoo_.path(), entry);
  WriteText(Entry(), entry.dump());
  ExpectRefused();
}

INSTANTIATE_TEST_SUITE_P(Entries, PullAttack, testing::ValuesIn(Attacks()),
                         [](const auto& attack) { return attack.param.name; });

using PullAttackText = PullAttack;

// Here, `prepare` writes the entry's file itself, so it need not be valid JSON.
TEST_P(PullAttackText, IsRefusedAndNothingOutsideChanges) {
  Json entry = ReadJsonFile(Entry());
  GetParam().prepare(zoo_.path(), entry);
  ExpectRefused();
}

void Replace(const fs::path& zoo, const std::string& text) {
  WriteText(zoo / "entries/example/Tiny/0.1.0.json", text);
}
INSTANTIATE_TEST_SUITE_P(
    Texts, PullAttackText,
    testing::Values(
        Attack{"empty", [](const fs::path& zoo, Json&) { Replace(zoo, ""); },
               "JSON refused at byte 1"},
        Attack{"a_key_twice",
               [](const fs::path& zoo, Json& entry) {
                 Replace(zoo, "{\"name\": \"example/Other\", " + entry.dump().substr(1));
               },
               "is given twice"},
        Attack{"nested_without_end",
               [](const fs::path& zoo, Json&) { Replace(zoo, std::string(100'000, '[')); },
               "nested deeper"},
        Attack{"too_long",
               [](const fs::path& zoo, Json& entry) {
                 Replace(zoo, entry.dump() + std::string(2 << 20, ' '));
               },
               "the file exceeds the limit of"},
        Attack{"too_many_values",
               [](const fs::path& zoo, Json& entry) {
                 for (int i = 0; i < 20'000; ++i) entry["model"]["x"].push_back(i);
                 Replace(zoo, entry.dump());
               },
               "more than 10000 values"},
        Attack{"not_utf8", [](const fs::path& zoo, Json&) { Replace(zoo, "{\"\xff\": 1}"); },
               "ill-formed UTF-8"},
        Attack{"link_out",
               [](const fs::path& zoo, Json& entry) {
                 WriteText(Outside(zoo), entry.dump());
                 fs::remove(zoo / "entries/example/Tiny/0.1.0.json");
                 fs::create_symlink(Outside(zoo), zoo / "entries/example/Tiny/0.1.0.json");
               },
               "is a link that points outside the zoo"},
        Attack{"folder_link_out",
               [](const fs::path& zoo, Json&) {
                 fs::rename(zoo / "entries/example", zoo.parent_path() / "example");
                 fs::create_directory_symlink(zoo.parent_path() / "example",
                                              zoo / "entries/example");
               },
               "is a link that points outside the zoo"},
        Attack{"yank_of_another",
               [](const fs::path& zoo, Json&) {
                 fs::create_directories(zoo / "yanked/example/Tiny");
                 WriteText(zoo / "yanked/example/Tiny/0.1.0.json", "{\"reason\": \"x\"}");
               },
               "does not yank"}),
    [](const auto& attack) { return attack.param.name; });

}  // namespace
}  // namespace oscar
