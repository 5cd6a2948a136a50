// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows with the columns of training data, through the real programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"
#include "tests/tools/artifact_bytes.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

class DataRows : public testing::Test {
 protected:
  // 12 documents; `change` makes a row of its ids.
  fs::path Write(const std::string& name, const std::function<Json(std::vector<int>)>& change) {
    fs::create_directories(scratch_ / name);
    const fs::path path = scratch_ / name / "rows.jsonl";
    std::ofstream file(path);
    for (int document = 0; document < 12; ++document) {
      std::vector<int> ids;
      for (int i = 0; i < 60 + 7 * (document % 5); ++i)
        ids.push_back((i * 7919 + document * 104729) % 30);
      file << change(ids) << "\n";
    }
    return path;
  }

  ProgramExit Run(const char* program, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--device", "cpu"});
    return RunProgram(program, arguments);
  }
  fs::path Calibrate(const std::string& name, std::vector<std::string> subject) {
    const fs::path output = scratch_ / (name + "-artifact");
    for (const char* argument : {"--min-tokens", "1", "--error-rows", "8", "--sink-tokens", "4",
                                 "--recent-tokens", "8", "--quant-group-size", "0", "-o"})
      subject.emplace_back(argument);
    subject.push_back(output);
    const ProgramExit exit = Run(OSCAR_CALIBRATE, subject);
    EXPECT_EQ(exit.code, 0) << exit.all();
    log_ = exit.err;
    return output;
  }
  std::string Model() const { return TestData("families/qwen3/config.json").parent_path(); }

  void ExpectSameStatistics(const fs::path& a, const fs::path& b) {
    for (const char* file : {"rotations.safetensors", "moments.safetensors"}) {
      const std::string bytes = ReadText(a / file);
      EXPECT_FALSE(bytes.empty());
      EXPECT_TRUE(ReadText(b / file) == bytes) << file;
    }
    EXPECT_EQ(ReadJsonFile(a / "report.json").at("layers"),
              ReadJsonFile(b / "report.json").at("layers"));
  }

  fs::path scratch_ = TestScratch("data_rows");
  std::string log_;
};

Json Plain(const std::vector<int>& ids) { return {{"input_ids", ids}}; }

void EraseAll(Json& json, const char* key) {
  if (json.is_object()) json.erase(key);
  if (json.is_structured())
    for (Json& member : json) EraseAll(member, key);
}

// Padding left, right and inside: equal bytes, except for the file's name and digest.
TEST_F(DataRows, PaddingGivesTheArtifactOfTheRowsWithoutIt) {
  const fs::path clean = Calibrate("clean", {Model(), "--data", Write("clean", Plain)});
  int number = 0;
  const fs::path padded =
      Calibrate("padded", {Model(), "--data", Write("padded", [&](const std::vector<int>& ids) {
                             std::vector<int> all, mask;
                             for (size_t i = 0; i < ids.size(); ++i) {
                               const bool here = number % 3 == 0   ? i == 0
                                                 : number % 3 == 1 ? i + 1 == ids.size()
                                                                   : i == 20;
                               for (int pad = 0; here && number % 3 != 1 && pad < 40; ++pad) {
                                 all.push_back(31);
                                 mask.push_back(0);
                               }
                               all.push_back(ids[i]);
                               mask.push_back(1);
                               for (int pad = 0; here && number % 3 == 1 && pad < 40; ++pad) {
                                 all.push_back(31);
                                 mask.push_back(0);
                               }
                             }
                             ++number;
                             return Json{{"input_ids", all}, {"attention_mask", mask}};
                           })});
  EXPECT_NE(log_.find("480 padding tokens (attention_mask 0) are left out"), std::string::npos)
      << log_;
  auto of_clean = ArtifactBytes(clean), of_padded = ArtifactBytes(padded);
  ASSERT_EQ(of_clean.size(), of_padded.size());
  for (const char* file : {"rotations.safetensors", "moments.safetensors", "README.md"})
    EXPECT_TRUE(of_padded.at(file) == of_clean.at(file)) << file;
  // These also name the digest of the file that was read, and each other's.
  for (const char* file : {"manifest.json", "report.json"}) {
    const auto plain = [&](const std::map<std::string, std::string>& files) {
      Json json = Json::parse(files.at(file));
      json.erase("files");
      EraseAll(json, "source_digests");
      return json.dump(1);
    };
    EXPECT_EQ(plain(of_padded), plain(of_clean));
  }
}

// The pack's own rows, of the model that it names.
TEST_F(DataRows, PublicPaddingGivesTheStatisticsOfTheRowsWithoutIt) {
  OSCAR_PACK_OR_SKIP(pack, "public_reports/01-attention-mask-ignored");
  const std::string model = TestData("tiny-qwen3/config.json").parent_path();
  ExpectSameStatistics(Calibrate("clean", {model, "--data", pack / "clean.jsonl", "--no-auto"}),
                       Calibrate("padded", {model, "--data", pack / "padded.jsonl", "--no-auto"}));
}

Json Answers(const std::vector<int>& ids) {
  std::vector<int> labels = ids;
  std::fill_n(labels.begin(), ids.size() / 2, -100);
  return {{"input_ids", ids}, {"labels", labels}};
}

// The same from the model and from a dump of it, and not what all queries give.
TEST_F(DataRows, QueriesThatDoNotCountAreStatedAndTakeNoPart) {
  const fs::path rows = Write("answers", Answers), plain = Write("plain", Plain);
  const fs::path of_model = Calibrate("model", {Model(), "--data", rows, "--dtype", "f32"});
  EXPECT_NE(log_.find("tokens count (loss_mask, labels)"), std::string::npos) << log_;
  const Json data = ReadJsonFile(of_model / "manifest.json").at("data");
  const auto tokens = data.at("tokens").at("used").get<int64_t>();
  EXPECT_NEAR(data.at("counted_queries").get<double>() / static_cast<double>(tokens), .5, .01);
  const fs::path dump = scratch_ / "dump.h5";
  const ProgramExit captured =
      Run(OSCAR_CAPTURE, {Model(), "--data", rows, "--dtype", "f32", "-o", dump});
  EXPECT_EQ(captured.code, 0) << captured.all();
  ExpectSameStatistics(of_model, Calibrate("dump", {"--from", dump}));
  const fs::path of_all = Calibrate("all", {Model(), "--data", plain, "--dtype", "f32"});
  EXPECT_NE(ReadText(of_all / "moments.safetensors"), ReadText(of_model / "moments.safetensors"));
  const ProgramExit upstream =
      Run(OSCAR_CAPTURE, {Model(), "--data", rows, "--format", "upstream", "-o", scratch_ / "up"});
  EXPECT_EQ(upstream.code, 2) << upstream.all();
  EXPECT_NE(upstream.err.find("cannot store which queries count"), std::string::npos)
      << upstream.err;
}

// -o out/ is -o out, and its job lies beside it.
TEST_F(DataRows, SlashesAtTheEndOfPathsDoNotMatter) {
  const fs::path rows = Write("plain", Plain), out = scratch_ / "out";
  const ProgramExit exit =
      Run(OSCAR_CALIBRATE, {Model() + "/", "--data", rows, "--min-tokens", "1", "--no-auto",
                            "--quant-group-size", "0", "-o", out.string() + "//"});
  EXPECT_EQ(exit.code, 0) << exit.all();
  EXPECT_TRUE(fs::exists(out / "manifest.json"));
  EXPECT_FALSE(fs::exists(out / ".job"));
  EXPECT_FALSE(fs::exists(out.string() + ".job"));
  const ProgramExit again =
      Run(OSCAR_CALIBRATE, {Model(), "--data", rows, "-o", out.string() + "/"});
  EXPECT_EQ(again.code, 3);
  EXPECT_NE(again.err.find(out.string() + ": exists already"), std::string::npos) << again.err;
  const ProgramExit dump =
      Run(OSCAR_CAPTURE, {Model(), "--data", rows, "-o", (scratch_ / "d.h5").string() + "/"});
  EXPECT_EQ(dump.code, 0) << dump.all();
  EXPECT_TRUE(fs::is_regular_file(scratch_ / "d.h5"));
}

}  // namespace
}  // namespace oscar
