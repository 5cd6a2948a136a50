// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <functional>

#include "calib/job/shard_document.h"
#include "calib/moments/moments_file.h"
#include "capture/files/digest_json.h"
#include "export/artifact/artifact_format.h"
#include "export/report/comparison.h"
#include "export/report/comparison_table.h"
#include "export/report/report_consistency.h"
#include "export/report/report_page.h"
#include "export/report/report_schema.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/export/report/sample_report.h"
#include "tests/fuzz/harness/harnesses.h"
#include "tests/fuzz/json_places.h"
#include "tests/zoo/sample_zoo.h"
#include "zoo/check/artifact_check.h"
#include "zoo/store/zoo_format.h"

namespace fs = std::filesystem;

namespace oscar::fuzz {
namespace {

// Checks that both JSON readers agree. A report that the schema accepts must have a page, and its
// canonical form must be accepted, too.
void RunReport(std::string_view input) {
  const Json report = ParseStrictJson(input, "report.json");
  FUZZ_CHECK(ToJson(JsonText(input, "report.json").root()) == report);
  CheckReport(report, "report.json");
  const std::string page = ReportPage(report);
  FUZZ_CHECK(page.find("<script") == page.npos);
  CheckReport(ParseStrictJson(CanonicalJson(report), "again"), "again");
  if (report.contains("validation")) {
    static const Json other = SampleReport({.num_layers = 1, .num_kv_heads = 1, .kernels = false});
    const Json comparison = CombineReports({{"a", report}, {"b", other}});
    FUZZ_CHECK(ComparisonPage(comparison).find("<script") == page.npos);
    (void)ComparisonCsv(comparison);
    (void)ComparisonMarkdown(comparison, {});
  }
  try {
    CheckNumbersAgree(report, "report.json");
  } catch (const InputError&) {  // most do not agree; only the zoo requires it
  }
}

// Shortens every list as far as the schema allows, because libFuzzer seldom runs large inputs.
// Keeps at least `arms` arms and `layers` layers.
void Shorten(Json& whole, Json& part, size_t arms, size_t layers) {
  const auto accepted = [&] {
    try {
      CheckReport(whole, "seed");
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const bool of_objects = part.is_array() && !part.empty() && part[0].is_object();
  const size_t least = of_objects && part[0].contains("method")     ? arms
                       : of_objects && part[0].contains("layer_id") ? layers
                                                                    : 1;
  for (size_t i = part.is_array() ? part.size() : 0; i > 0 && part.size() > least; --i) {
    const Json kept = part;
    part.erase(i - 1);
    if (!accepted()) part = kept;
  }
  if (!part.is_structured()) return;
  for (Json& child : part) Shorten(whole, child, arms, layers);
}

std::vector<std::string> ReportSeeds() {
  std::vector<Json> reports = {
      SampleReport({.num_layers = 1, .num_kv_heads = 1, .kernels = false}),
      SampleReport({.num_layers = 1, .num_kv_heads = 2, .validation = false})};
  if (kCampaign) {
    SampleReportOptions other{.num_layers = 1, .num_kv_heads = 1};
    other.hostile = other.every_member = true;
    reports.push_back(SampleReport(other));
    other.hostile = other.end_to_end = other.held_out = other.gate = other.kernels_pass = false;
    reports.push_back(SampleReport(other));
    const Json rare = reports.back();
    for (Json& report : reports) Shorten(report, report, 1, 1);
    constexpr size_t kAll = 20, kManyLayers = 17;  // so many that pages draw them differently
    reports.push_back(rare);
    Shorten(reports.back(), reports.back(), kAll, 1);
    reports.push_back(SampleReport({.num_layers = kManyLayers, .num_kv_heads = 1}));
    Shorten(reports.back(), reports.back(), 1, kManyLayers);
  }
  // Adds reports of runs of the bundled model, whose numbers agree.
  std::vector<std::string> seeds = SeedFiles("reports", ".json", 65536);
  for (const Json& report : reports) seeds.push_back(report.dump());
  return seeds;
}

// An artifact that is written once. It has no validation, whose report alone would take a hundred
// times as long (seeds have short ones). Inputs patch its report.json and the header of its
// rotations.safetensors (RFC 7396), which are too large to be mutated whole. The tensors after the
// header stay the same.
class Sample {
 public:
  Sample(const std::function<void(const fs::path&)>& write, const char* name)
      : folder_(Scratch() / name) {
    write(folder_);
    manifest_ = ReadJsonFile(folder_ / kManifestFile).dump();
    report_ = ReadJsonFile(folder_ / kReportFile);
    rotations_ = ReadAll(folder_ / kRotationsFile);
    header_ = PartOf(rotations_);
  }

  const fs::path& folder() const { return folder_; }
  const std::string& manifest() const { return manifest_; }
  const Json& report() const { return report_; }
  const Json& header() const { return header_.json; }

  // Writes the patched report.json and rotations.safetensors. Both are always written, so that
  // nothing of an earlier input is left. If the rotations of a validation are {}, they become the
  // digest of those written here.
  void Patch(const Json& report, const Json& header) const {
    JsonPart patched = header_;
    patched.json = Merged(patched.json, header);
    WriteAll(folder_ / kRotationsFile, With(patched, rotations_));
    Json merged = Merged(report_, report);
    const auto validated = "/validation/rotations"_json_pointer;
    if (merged.contains(validated) && merged[validated] == Json::object())
      merged[validated] = DigestToJson(DigestFile(folder_ / kRotationsFile));
    WriteAll(folder_ / kReportFile, Dump(merged));
  }

 private:
  static Json Merged(Json whole, const Json& patch) {
    if (patch.is_object()) whole.merge_patch(patch);
    return whole;
  }

  fs::path folder_;
  std::string manifest_, rotations_;
  JsonPart header_;
  Json report_;
};

const Sample& PlainSample() {
  static const Sample sample([](const fs::path& folder) { WriteSampleArtifact(folder); },
                             "artifact");
  return sample;
}

// Returns an artifact with an automatic choice, with rotations for all heads and rotations per
// head.
const Sample& ChosenSample() {
  static const Sample sample(
      [](const fs::path& folder) {
        const std::vector<SampleRecipe> recipes = SampleRecipes();
        WriteChosenArtifact(folder, {recipes.front(), recipes.back()}, {});
      },
      "chosen");
  return sample;
}

void PrepareArtifact() {
  (void)PlainSample();
  (void)ChosenSample();
}

// Splits an input: manifest.json, NUL, a patch of report.json, NUL, a patch of the header of
// rotations.safetensors. RunArtifact updates the digests in the manifest, as a forger would.
std::array<std::string, 3> PartsOf(std::string_view input) {
  std::array<std::string, 3> parts;
  for (std::string& part : parts) {
    const size_t end = std::min(input.find('\0'), input.size());
    part = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  return parts;
}

void RunArtifact(std::string_view input) {
  const auto [text, report, header] = PartsOf(input);
  Json manifest = ParseStrictJson(text, "manifest.json");
  const bool chosen = manifest.is_object() && manifest.contains("auto");
  const Sample& sample = chosen ? ChosenSample() : PlainSample();
  sample.Patch(ParseLoosely(report), ParseLoosely(header));
  const fs::path& folder = sample.folder();
  if (manifest.is_object() && manifest.contains("files") && manifest["files"].is_object()) {
    for (auto& [name, digest] : manifest["files"].items()) {
      std::error_code refused;  // set if no file can have this name
      if (name.find('/') == name.npos && fs::is_regular_file(folder / name, refused))
        digest = DigestToJson(DigestFile(folder / name));
    }
  }
  WriteAll(folder / kManifestFile, CanonicalJson(manifest));
  const CheckedArtifact checked = CheckArtifact(folder, std::nullopt, {});
  FUZZ_CHECK(checked.identity == DigestFile(folder / kManifestFile).sha256);
  FUZZ_CHECK(checked.files.size() >= 6);
}

std::vector<std::string> ArtifactSeeds() {
  std::vector<std::string> seeds;
  for (const Sample* sample : {&PlainSample(), &ChosenSample()}) {
    seeds.push_back(sample->manifest());
    for (const char* member : {"layers", "calibration"})
      seeds.push_back(sample->manifest() + '\0' +
                      Json{{member, sample->report().at(member)}}.dump());
    seeds.push_back(sample->manifest() + '\0' + '\0' + sample->header().dump());
    // Adds a validation of record with a gate; its lists are as short as its numbers allow.
    const std::string name = sample->folder().filename().string() + ".json";
    seeds.push_back(sample->manifest() + '\0' + SeedFiles("validations", name, 65536).at(0));
  }
  return seeds;
}

std::string MutateArtifact(const std::string& input, Random& random) {
  std::array<std::string, 3> parts = PartsOf(input);
  std::string& part = parts[random() % parts.size()];
  std::string& mutated = part.empty() ? parts[0] : part;
  mutated = MutateJson(mutated, random);
  return parts[0] + '\0' + parts[1] + '\0' + parts[2];
}

// Checks that accepted moments keep their sums in a round trip.
void RunMoments(std::string_view input) {
  const LayerMoments moments = MomentsReader(FileOf(input, "moments.safetensors")).Read(3);
  const fs::path path = Scratch() / "moments.safetensors";
  MomentsWriter writer(path);
  writer.Add(moments);
  writer.Commit();
  const LayerMoments again = MomentsReader(path).Read(3);
  FUZZ_CHECK(again.query == moments.query && again.key == moments.key);
  FUZZ_CHECK(again.key_sum == moments.key_sum && again.value == moments.value);
  FUZZ_CHECK(again.attention_output == moments.attention_output);
  FUZZ_CHECK(again.diagonal == moments.diagonal && again.rope == moments.rope);
  FUZZ_CHECK(again.fold == moments.fold && again.latent == moments.latent);
  FUZZ_CHECK(moments.query.size() * sizeof(double) <= input.size());
}

std::vector<std::string> MomentsSeeds() {
  std::vector<std::string> seeds;
  for (const bool known : {false, true}) {
    LayerMoments moments;
    moments.layer_id = 3;
    moments.num_q_heads = 2;
    moments.num_kv_heads = 1;
    moments.head_dim = moments.v_head_dim = 2;
    moments.tokens = 5;
    moments.query = moments.key = moments.attention_output = {2, 1, 1, 2};
    moments.value = {3, 1, 1, 3};
    moments.key_sum = {1, -1};
    if (known) {
      moments.diagonal = {1, 0, 0, 1};
      moments.diagonal_weight = {2};
      moments.rope = RopeSpec{};
      moments.rope->rotary_dim = 2;
      moments.rope->theta = 10000;
      moments.fold.pairs.rotary_dim = 2;
    }
    const fs::path path = Scratch() / "seed.safetensors";
    MomentsWriter writer(path);
    writer.Add(moments);
    writer.Commit();
    seeds.push_back(ReadAll(path));
  }
  return seeds;
}

// Checks that an accepted entry survives a round trip.
void RunZooEntry(std::string_view input) {
  const ZooEntry entry = ParseEntry(input, "entry");
  for (const auto& [name, digest] : entry.files) {
    FUZZ_CHECK(name.find('/') == name.npos && name != "..");
    FUZZ_CHECK(BlobPath("/zoo", digest.sha256).parent_path() == BlobFolder("/zoo"));
  }
  const std::string text = CanonicalJson(EntryToJson(entry));
  FUZZ_CHECK(CanonicalJson(EntryToJson(ParseEntry(text, "again"))) == text);
}

std::vector<std::string> ZooEntrySeeds() {
  const std::string digest(64, 'a');
  ZooEntry entry;
  entry.name = ParseZooName("example/tiny", "seed");
  entry.version = ZooVersionOf("0.1.0", "seed");
  entry.identity = digest;
  entry.files = {{kManifestFile, {digest, 10}}, {kRotationsFile, {std::string(64, 'b'), 20}}};
  entry.model = {{"id", "example/tiny"}};
  entry.validation = {{"headline_arm", "x"}};
  entry.publisher = {{"program", "oscar"}};
  return {EntryToJson(entry).dump()};
}

// Checks that an accepted shard has a valid number and share, and survives a round trip.
void RunShard(std::string_view input) {
  const ShardDocument shard = ShardDocument::From(ParseStrictJson(input, "shard.json"), "shard");
  FUZZ_CHECK(shard.place.number >= 1 && shard.place.number <= shard.place.count);
  FUZZ_CHECK(shard.place.count <= kMostShards);
  FUZZ_CHECK(shard.share.first_token >= 0 && shard.share.num_tokens >= 0);
  FUZZ_CHECK(shard.token_chunk() >= 1 && shard.query_chunk() >= 1);
  const ShardDocument again = ShardDocument::From(shard.ToJson(), "again");
  FUZZ_CHECK(again.place == shard.place && again.files.layers == shard.files.layers);
  FUZZ_CHECK(again.ToJson() == shard.ToJson());
}

std::vector<std::string> ShardSeeds() {
  ShardDocument shard;
  shard.place = {2, 3};
  shard.share = {.first_sequence = 4, .num_sequences = 2, .first_token = 900, .num_tokens = 512};
  shard.files.layers = {{std::string(64, 'a'), 4096}, {std::string(64, 'b'), 8192}};
  shard.run = {{"machine", {{"token_chunk", 32768}, {"query_chunk", 256}}}, {"model", "tiny"}};
  shard.weights = {{"files", {{"model.safetensors", 1}}}};
  const std::string without = shard.ToJson().dump();
  shard.files.hidden = {std::string(64, 'c'), 100};
  shard.timings = Json::array({{{"layer", 1.5}}});
  return {without, shard.ToJson().dump()};
}

}  // namespace

const Harness kReport = {"report", RunReport, ReportSeeds, MutateJson, 65536, 100};
const Harness kArtifact = {.name = "artifact",
                           .run = RunArtifact,
                           .seeds = ArtifactSeeds,
                           .mutate = MutateArtifact,
                           .max_bytes = 65536,
                           .slowness = 30,
                           .prepare = PrepareArtifact};
const Harness kMoments = {"moments", RunMoments, MomentsSeeds, MutateSafetensors};
const Harness kZooEntry = {"zoo_entry", RunZooEntry, ZooEntrySeeds, MutateJson};
const Harness kShard = {"shard", RunShard, ShardSeeds, MutateJson};

}  // namespace oscar::fuzz
