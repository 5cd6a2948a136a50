// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibrates every family of tests/data/families from the model and from a dump of it, and expects
// the same bytes for all layers. This is the only test that finds properties which an observer or a
// fit reads from a model but a dump lacks. A search runs only for the first family with each kind
// of attention, because it takes most of the time and depends only on the attention.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "calib/job/layer_file.h"
#include "calib/run/calibrate.h"
#include "calib/run/provenance.h"
#include "capture/dump/dump_reader.h"
#include "capture/model/run/dump_observer.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::vector<fs::path> Families() {
  std::vector<fs::path> families;
  for (const auto& entry : fs::directory_iterator(TestData("families"))) {
    if (entry.is_directory()) families.push_back(entry.path());
  }
  std::ranges::sort(families);
  return families;
}

// Returns texts longer than windows (10 tokens) and original contexts (16), cut to the longest that
// the model takes.
std::vector<std::vector<int32_t>> SomeTexts(const ModelSpec& spec) {
  std::minstd_rand random(7);
  std::vector<std::vector<int32_t>> texts;
  for (const int64_t length : {40, 19, 33}) {
    auto& text = texts.emplace_back(static_cast<size_t>(std::min(length, spec.max_positions)));
    for (int32_t& id : text)
      id = static_cast<int32_t>(random() % static_cast<uint32_t>(spec.vocab_size));
  }
  return texts;
}

struct Family {
  explicit Family(const fs::path& path)
      : checkpoint(Checkpoint::Open(path)),
        spec(ReadModelSpec(ReadJsonFile(path / "config.json"), {.checkpoint = &checkpoint})) {}
  std::shared_ptr<ModelSource> Source(at::ScalarType dtype, const LoopOptions& options) const {
    return std::make_shared<ModelSource>(checkpoint, spec, SomeTexts(spec), at::kCPU, dtype,
                                         options);
  }
  Checkpoint checkpoint;
  ModelSpec spec;
};

// Returns masks of the queries that count. The second mask is empty: all queries count.
CountedQueries SomeMasks(const std::vector<int64_t>& lengths) {
  CountedQueries masks;
  for (const int64_t length : lengths) {
    std::vector<uint8_t>& mask = masks.emplace_back();
    for (int64_t i = 0; masks.size() != 2 && i < length; ++i) mask.push_back(i % 4 != 1 && i > 5);
  }
  return masks;
}

struct Extent {
  bool search = true;  // recipes, bits and clips are chosen, not only fitted
  int64_t refine = 0;
  bool masked = false;  // some queries do not count
};

// Describes a layer's attention as far as the search depends on it, without the numbers in its rope
// parameters.
std::string KindOfAttention(const DumpLayer& layer) {
  std::string rope = layer.facts ? layer.facts->rope : "unknown";
  std::erase_if(rope,
                [](char c) { return std::isdigit(static_cast<unsigned char>(c)) || c == '.'; });
  return fmt::format(
      "{}/{} heads, {}/{} dims, latent {}/{}, window {}, softcap {}, sinks {}, readers {}, "
      "rope {}, qk norm {}, folding {}",
      layer.num_q_heads, layer.num_kv_heads, layer.head_dim, layer.v_head_dim, layer.latent_rank,
      layer.rope_dim, layer.window.has_value(), layer.softcap > 0, !layer.sinks.empty(),
      layer.readers.size(), rope, layer.facts && layer.facts->qk_norm,
      layer.facts ? layer.facts->not_foldable : "");
}

void Calibrate(std::shared_ptr<AttentionSource> source, at::ScalarType dtype, const Extent& extent,
               const CountedQueries& counted, const fs::path& job_path) {
  CalibrationInput input{.source = std::move(source),
                         .device = at::kCPU,
                         .dtype = dtype,
                         .options = {},
                         .counted = counted};
  input.options.min_tokens = 1;
  input.options.error_rows = 8;
  input.options.sink_tokens = 2;
  input.options.recent_tokens = 4;
  input.options.clip.quant_group_size = 0;
  input.options.automatic.enabled = extent.search;
  input.options.automatic.context = 128;  // positions are spread over few offsets
  input.options.automatic.refine = extent.refine;
  JobDirectory job(job_path, {}, false);
  RunCalibration(input, job, {});
}

// Expects the same layer files from a model and from its dump. If `searched` is given, searches
// only if the family adds a kind of attention to it.
void ExpectSameBytes(const fs::path& path, at::ScalarType dtype, Extent extent = {},
                     std::set<std::string>* searched = nullptr) {
  SCOPED_TRACE(path.filename());
  const Family family(path);
  const fs::path scratch = TestScratch("dump_families");
  LoopOptions expanded = CalibrationLoopOptions();
  expanded.show_expanded_heads = true;
  const auto source = family.Source(dtype, expanded);
  const CountedQueries counted =
      extent.masked ? SomeMasks(source->sequence_lengths()) : CountedQueries();
  DumpWriter writer(scratch / "d.h5", source->sequences(), {.counted = counted});
  DumpObserver observer(writer, nullptr, dtype);
  source->Run(0, observer, [](size_t) { return true; });
  writer.Commit({});
  const auto dump = std::make_shared<const DumpReader>(scratch / "d.h5");
  if (searched != nullptr) {
    extent.search = false;
    for (const DumpLayer& layer : dump->layers())
      extent.search |= searched->insert(KindOfAttention(layer)).second;
  }
  Calibrate(family.Source(dtype, CalibrationLoopOptions()), dtype, extent, counted,
            scratch / "model.job");
  Calibrate(std::make_shared<DumpSource>(dump, at::kCPU, dtype), dtype, extent,
            DumpData(*dump).counted(), scratch / "dump.job");

  for (size_t i = 0; i < family.spec.layers.size(); ++i) {
    const std::string name = LayerFileName(i);
    const std::string of_model = ReadText(scratch / "model.job" / name);
    EXPECT_FALSE(of_model.empty());
    EXPECT_TRUE(ReadText(scratch / "dump.job" / name) == of_model) << name;
  }
}

TEST(DumpFamilies, AreFittedToTheBytesOfTheirModels) {
  const std::vector<fs::path> families = Families();
  ASSERT_GT(families.size(), 80u);
  std::set<std::string> searched;
  for (const fs::path& family : families) ExpectSameBytes(family, at::kFloat, {}, &searched);
  EXPECT_GT(searched.size(), 20u);
}

// Tests a GPU's compute dtype with one family of each kind: plain, windows and sinks, shared
// caches, latents, experts and linear attention.
TEST(DumpFamilies, InBFloat16AsWell) {
  for (const char* family :
       {"qwen3", "gpt_oss", "gemma4_text-ple", "deepseek_v3", "qwen3_next", "gemma2"})
    ExpectSameBytes(TestData("families/" + std::string(family)), at::kBFloat16);
}

TEST(DumpFamilies, WithQueriesThatDoNotCount) {
  for (const char* family : {"qwen3", "gpt_oss", "gemma4_text-ple", "deepseek_v3"})
    ExpectSameBytes(TestData("families/" + std::string(family)), at::kFloat, {.masked = true});
}

// Refinement keeps its own queries and shifts positions, for which it needs the model's rope.
TEST(DumpFamilies, RefinedAsWell) {
  for (const char* family : {"qwen3", "gemma4_text-ple"})
    ExpectSameBytes(TestData("families/" + std::string(family)), at::kFloat, {.refine = 2});
}

}  // namespace
}  // namespace oscar
