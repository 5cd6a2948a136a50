// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/own_arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

#include "capture/files/digest.h"
#include "capture/files/digest_json.h"
#include "capture/files/sandbox.h"
#include "export/artifact/artifact_format.h"
#include "export/formats/given_rotations.h"
#include "export/simulate/guest_methods.h"
#include "export/simulate/quantized_rows.h"
#include "export/validate/arm.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr size_t kMostSwept = 100;  // arms

// Throws UsageError if `name` contains a character that is not allowed in a name, or is the name of
// a method.
void CheckName(std::string_view name, const GivenArms& own, const char* flag) {
  const bool plain = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  if (!plain) {
    throw UsageError(
        fmt::format("{}: name '{}': expected NAME=FILE, where NAME consists of letters, digits, "
                    "'_', '-' and '.'",
                    flag, name));
  }
  const auto named = [&](const auto& method) { return method.name == name; };
  const auto guest = [&](const auto& method) {
    return method->name == name || method->name.starts_with(std::string(name) + ":");
  };
  if (std::ranges::any_of(CacheMethods(), named) || std::ranges::any_of(own.methods, guest))
    throw UsageError(
        fmt::format("{}: a method '{}' exists already; choose another name", flag, name));
}

Json FileRecord(const RotationFile& file) {
  Json record = {{"file", file.path.string()}, {"holds", DescribeRotations(file)}};
  if (fs::is_regular_file(file.path)) record["digest"] = DigestToJson(DigestFile(file.path));
  return record;
}

void AddRotation(const std::string& argument, GivenArms& own) {
  const size_t equals = argument.find('=');
  if (equals == argument.npos)
    throw UsageError(
        fmt::format("--rotation {}: expected NAME=FILE or NAME=KEYS:VALUES", argument));
  const std::string name = argument.substr(0, equals);
  CheckName(name, own, "--rotation");
  GivenRotations rotations = ReadGivenRotations(argument.substr(equals + 1));
  for (const auto& [side, what] :
       {std::pair{&rotations.k, "keys"}, std::pair{&rotations.v, "values"}}) {
    if (!*side) continue;
    own.settings["rotations"][name][what] = FileRecord(**side);
    own.found.push_back(fmt::format("{}: {} from {}: {}", name, what, (*side)->path.string(),
                                    DescribeRotations(**side)));
  }
  own.methods.push_back(RotationMethod(name, std::move(rotations)));
  own.arms.push_back(name + "+clip+windows");
}

// Returns "oscar_per_head", or "oscar_shared" if the artifact has no per-head rotations.
std::string OscarOf(const Artifact& artifact) {
  const auto per_head = [&](int id) { return artifact.NumRotations(id, 'k', false) > 1; };
  return std::ranges::any_of(artifact.layer_ids(), per_head) ? "oscar_per_head" : "oscar_shared";
}

void AddArtifact(const std::string& argument, GivenArms& own) {
  const size_t equals = argument.find('=');
  const bool named = equals != argument.npos && !fs::exists(argument);
  const fs::path directory = named ? argument.substr(equals + 1) : argument;
  const fs::path last = directory.has_filename() ? directory : directory.parent_path();
  const std::string name = named ? argument.substr(0, equals) : last.filename().string();
  CheckName(name, own, "--other-artifact");
  const auto artifact = std::make_shared<const Artifact>(Artifact::Open(directory));
  own.settings["artifacts"][name] = {
      {"directory", directory.string()},
      {"identity", artifact->identity()},
      {"rotations", artifact->manifest().at("files").at(kRotationsFile)}};
  own.found.push_back(fmt::format("{}: artifact {}, {} layers", name, directory.string(),
                                  artifact->layer_ids().size()));
  const GuestMethods methods = MethodsOfArtifact(name, artifact);
  own.methods.insert(own.methods.end(), methods.begin(), methods.end());
  own.arms.push_back(fmt::format("{}:{}+clip+windows", name, OscarOf(*artifact)));
  if (artifact->has_choices()) own.arms.push_back(name + ":auto+windows");
  own.others.push_back(artifact);
}

void AddQuantized(const std::string& argument, const AttentionDump& dump, GivenArms& own) {
  const size_t equals = argument.find('=');
  if (equals == argument.npos)
    throw UsageError(fmt::format("--quantized {}: expected NAME=FILE", argument));
  const std::string name = argument.substr(0, equals), file = argument.substr(equals + 1);
  CheckName(name, own, "--quantized");
  // Opens the file in a separate process first, because a malicious file may crash HDF5.
  LookInSandbox([&] { QuantizedMethod(name, file, dump); }, file);
  own.methods.push_back(QuantizedMethod(name, file, dump));
  own.settings["quantized"][name] = {{"file", file}, {"digest", DigestToJson(DigestFile(file))}};
  own.found.push_back(fmt::format("{}: keys and values from {}", name, file));
  own.arms.insert(own.arms.end(), {name, name + "+windows"});
}

// Parses FIRST:LAST:STEP.
std::vector<double> Range(std::string_view text, const std::string& sweep) {
  double numbers[3] = {};
  size_t count = 0;
  const char *at = text.data(), *end = at + text.size();
  while (count < 3) {
    const auto [next, error] = std::from_chars(at, end, numbers[count]);
    if (error != std::errc()) break;
    at = next;
    ++count;
    if (count == 3 || at == end || *at != ':') break;
    ++at;
  }
  const auto [first, last, step] = numbers;
  const double steps = std::floor((last - first) / step + 1e-6);
  if (count != 3 || at != end || !(first > 0 && last <= 1 && first <= last && step > 0) ||
      !(steps < static_cast<double>(kMostSwept))) {
    throw UsageError(
        fmt::format("--sweep {}: expected clip=FIRST:LAST:STEP with at most {} ratios above 0 and "
                    "up to 1, such as clip=.88:.96:.02",
                    sweep, kMostSwept));
  }
  std::vector<double> range;
  for (int i = 0; i <= static_cast<int>(steps); ++i) range.push_back(first + i * step);
  return range;
}

void AddSweep(const std::string& sweep, const Artifact& artifact, const std::string& headline,
              GivenArms& own) {
  constexpr std::string_view kClip = "clip=";
  if (!sweep.starts_with(kClip))
    throw UsageError(fmt::format(
        "--sweep {}: only the clip ratio can be varied, such as clip=.88:.96:.02", sweep));
  const std::vector<double> ratios = Range(std::string_view(sweep).substr(kClip.size()), sweep);
  Arm arm = ParseArm(OscarOf(artifact) + "+windows");
  if (!headline.empty()) arm = ParseArm(headline, own.methods);
  if (!arm.method->takes_clip) {
    throw UsageError(fmt::format("--sweep {}: the headline configuration {} has no clip ratio",
                                 sweep, headline));
  }
  for (const double ratio : ratios) {
    own.arms.push_back(fmt::format("{}+clip={:.6g}{}{}", arm.method->name, ratio,
                                   arm.options.windows ? "+windows" : "",
                                   arm.options.bf16 ? "+bf16" : ""));
  }
}

}  // namespace

GivenArms ReadGivenArms(const OwnArmArguments& arguments, const Artifact& artifact,
                        const std::string& headline, const AttentionDump* dump) {
  GivenArms own;
  for (const std::string& rotation : arguments.rotations) AddRotation(rotation, own);
  for (const std::string& other : arguments.other_artifacts) AddArtifact(other, own);
  for (const std::string& quantized : arguments.quantized) {
    OSCAR_CHECK(dump != nullptr);
    AddQuantized(quantized, *dump, own);
  }
  if (!arguments.sweep.empty()) AddSweep(arguments.sweep, artifact, headline, own);
  return own;
}

}  // namespace oscar
