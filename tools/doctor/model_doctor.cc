// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/model_doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "capture/checkpoint/gguf/gguf_model.h"  // IsGgufPath
#include "capture/checkpoint/model_config.h"
#include "capture/checkpoint/weight_files.h"
#include "capture/files/object_fields.h"
#include "capture/model/spec/tensor_check.h"
#include "linalg/base/error.h"
#include "tools/cli/command.h"  // DescribeFailure

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Returns the object in `config` that holds `key` or should hold it. `where` names it, for example
// "config.json: text_config: rope_parameters". Settings of rotary embeddings may be one level
// deeper, in an object per layer type.
Json* FindObject(Json& config, std::string_view what, std::string_view where,
                 const std::string& key) {
  Json* object = &config;
  if (!where.starts_with(what)) return nullptr;
  where.remove_prefix(what.size());
  while (where.starts_with(": ")) {
    where.remove_prefix(2);
    const std::string member(where.substr(0, where.find(": ")));
    where.remove_prefix(member.size());
    const auto found = object->find(member);
    if (found == object->end() || !found->is_object()) return nullptr;
    object = &*found;
  }
  if (object->contains(key)) return object;
  for (Json& inner : *object)
    if (object != &config && inner.is_object() && inner.contains(key)) return &inner;
  return object;
}

// Erases a field. If it is the type of a rotary embedding, also erases the settings of that type.
void EraseField(Json& object, const std::string& key) {
  object.erase(key);
  if (key != "rope_type" && key != "type") return;
  Json kept = Json::object();
  for (const char* any_kind : {"rope_theta", "partial_rotary_factor"})
    if (object.contains(any_kind)) kept[any_kind] = object[any_kind];
  object = std::move(kept);
}

// Reads the spec of a faulty configuration. After each error it removes a refused field or adds a
// missing one with an invented value, and reads again. An error that such a repair may have caused
// is not reported as a reason.
class ConfigDoctor {
 public:
  ConfigDoctor(Json config, std::string what, const Checkpoint* checkpoint)
      : config_(std::move(config)), what_(std::move(what)), checkpoint_(checkpoint) {}

  std::optional<ModelSpec> Read(std::vector<std::string>& reasons) {
    constexpr int kMostProblems = 100;
    for (int round = 0; round < kMostProblems; ++round) {
      try {
        return ReadModelSpec(
            config_, {.unknown_config = UnknownConfig::kIgnore, .checkpoint = checkpoint_}, what_);
      } catch (const FieldError& error) {
        if (!Repair(error, reasons)) return std::nullopt;
      } catch (const InputError& error) {
        if (!repaired()) reasons.emplace_back(error.what());
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  bool repaired() const { return !blamed_.empty(); }
  bool invented_sizes() const { return !put_in_.empty(); }

 private:
  bool Repair(const FieldError& error, std::vector<std::string>& reasons) {
    Json* object = FindObject(config_, what_, error.where(), error.key());
    const bool is_there = object != nullptr && object->contains(error.key());
    const std::string_view text = error.what();
    // An invented size may contradict other fields. (A value that is not implemented is refused
    // whatever the invented sizes are.)
    const bool contradiction =
        !put_in_.empty() && is_there && text.find("is not implemented") == text.npos;
    if (contradiction) return EnlargePutIn();
    if (!blamed_.insert(error.where() + ": " + error.key()).second) return false;
    reasons.emplace_back(text);
    if (object == nullptr) return false;
    if (is_there) {
      // Erasing this field would also erase invented values.
      const bool takes_others = object->at(error.key()).is_structured() || object != &config_;
      if (!put_in_.empty() && takes_others) return false;
      EraseField(*object, error.key());
    } else {
      put_in_.push_back(&((*object)[error.key()] = kSmall));  // a map does not move its values
    }
    return true;
  }

  // Replaces invented sizes by a number with many divisors, because sizes must often be multiples
  // of others. Returns false if that was already done.
  bool EnlargePutIn() {
    if (*put_in_.back() != kSmall) return false;
    for (Json* value : put_in_) *value = kManyDivisors;
    return true;
  }

  static constexpr int kSmall = 1, kManyDivisors = 5040;
  Json config_;
  std::string what_;
  const Checkpoint* checkpoint_;
  std::set<std::string> blamed_;
  std::vector<Json*> put_in_;  // values of the fields that were missing
};

void EraseQuantization(Json& config) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    config.erase(key);
    if (const auto text = config.find("text_config"); text != config.end() && text->is_object())
      text->erase(key);
  }
}

class ModelDoctor {
 public:
  ModelDoctor(const ModelArguments& model, Diagnosis& result)
      : unknown_config_(model.unknown_config),
        directory_(result.location.directory),
        result_(result) {}

  void Run() {
    CheckLinks();
    ReadConfig();
    if (!config_.is_null()) ReadQuantization();
    OpenWeights();
    if (!config_.is_null()) ReadSpec();
    DescribeWeights();
  }

 private:
  // Runs `step` and turns an exception into a reason.
  template <class Step>
  bool Try(const Step& step) {
    try {
      step();
      return true;
    } catch (const InputError& error) {
      result_.reasons.push_back(DescribeFailure(error).message);
    } catch (const fs::filesystem_error& error) {
      result_.reasons.push_back(fmt::format("{}: {}", directory_.string(), error.code().message()));
    }
    return false;
  }

  void CheckLinks() {
    if (IsGgufPath(directory_)) return;
    Try([&] {
      std::vector<std::string> dangling;
      for (const auto& entry : fs::directory_iterator(directory_)) {
        std::error_code ignored;
        if (entry.is_symlink() && !fs::exists(entry.path(), ignored))
          dangling.push_back(entry.path().filename().string());
      }
      std::ranges::sort(dangling);
      for (const std::string& name : dangling) {
        result_.reasons.push_back(
            fmt::format("{}: links to a file that does not exist", (directory_ / name).string()));
      }
    });
  }

  void ReadConfig() {
    const std::string path = ModelConfigName(directory_);
    std::error_code ignored;
    if (fs::is_symlink(path, ignored) && !fs::exists(path, ignored)) return;  // already reported
    Try([&] {
      if (!HasModelConfig(directory_))
        throw InputError(
            fmt::format("{}: no such file, but it is needed to describe the model", path));
      Json config = ReadModelConfig(directory_);
      if (!config.is_object()) throw InputError(path + ": expected a JSON object");
      config_ = std::move(config);
    });
  }

  void ReadQuantization() {
    format_known_ = Try([&] {
      quantization_ = QuantizationConfig::ReadDirectory(directory_);
      result_.quantized = !quantization_.plain();
    });
    if (!format_known_) EraseQuantization(config_);
  }

  // Reports files that an index lists and that do not exist.
  void CheckShards() {
    const fs::path index = directory_ / kWeightIndexFile;
    std::error_code ignored;
    if (fs::exists(directory_ / kSingleWeightFile, ignored) || !fs::exists(index, ignored)) return;
    std::set<std::string> lost;
    const Json json = ReadJsonFile(index.string());
    const auto map = json.is_object() ? json.find("weight_map") : json.end();
    if (map == json.end() || !map->is_object()) return;  // reported when the file is opened
    for (const Json& file : *map) {
      if (file.is_string() && IsBareFileName(file.get<std::string>()) &&
          !fs::exists(directory_ / file.get<std::string>(), ignored))
        lost.insert(file.get<std::string>());
    }
    for (const std::string& file : lost) {
      result_.reasons.push_back(
          fmt::format("{}: this file of weights is listed in {} but does not exist",
                      (directory_ / file).string(), kWeightIndexFile));
    }
  }

  void OpenWeights() {
    if (!HasWeightFiles(directory_)) {
      NoWeights();
      if (format_known_) checkpoint_ = Checkpoint::WithoutWeights(directory_);
      return;
    }
    const size_t before = result_.reasons.size();
    Try([&] { CheckShards(); });
    if (result_.reasons.size() > before) return;
    if (format_known_) {
      result_.has_weights = Try([&] { checkpoint_ = Checkpoint::Open(directory_); });
      return;
    }
    Try([&] {
      for (const std::string& file : FindWeightFiles(directory_).files) {
        const SafetensorsFile opened = SafetensorsFile::Open(directory_ / file);
        for (const auto& [name, info] : opened.tensors()) names_.insert(name);
      }
    });
  }

  void NoWeights() {
    std::vector<std::string> others;
    Try([&] {
      for (const auto& entry : fs::directory_iterator(directory_)) {
        const std::string name = entry.path().filename().string();
        for (const char* ending : {".gguf", ".bin", ".pth", ".pt", ".safetensors"})
          if (name.ends_with(ending)) others.push_back(name);
      }
    });
    std::ranges::sort(others);
    if (others.empty()) {
      result_.missing.push_back(fmt::format("the weights: {} or {} and the files it names",
                                            kSingleWeightFile, kWeightIndexFile));
      return;
    }
    result_.reasons.push_back(fmt::format(
        "{}: these weights ({}{}) are not supported; expected {}, or {} and the files it names",
        directory_.string(), others.front(),
        others.size() > 1 ? fmt::format(" and {} more", others.size() - 1) : std::string(),
        kSingleWeightFile, kWeightIndexFile));
  }

  void ReadSpec() {
    const std::string what = ModelConfigName(directory_);
    ConfigDoctor doctor(config_, what, result_.has_weights ? &*checkpoint_ : nullptr);
    result_.spec = doctor.Read(result_.reasons);
    if (!result_.spec) return;
    if (!result_.spec->layers.empty() && quantization_.method() != "mxfp4") {  // for experts only
      std::string_view module = result_.spec->layers.front().attention.o.weight;
      module = module.substr(0, module.rfind('.'));
      if (const WeightScheme* scheme = quantization_.SchemeOf(module))
        result_.attention_codes = scheme->name;
    }
    const bool sound = result_.reasons.empty();
    for (const std::string& field : result_.spec->fields.unknown) {
      const std::string why = WhyUnknownRefused(field, unknown_config_);
      if (!why.empty()) result_.reasons.push_back(fmt::format("{}: {} {}", what, field, why));
    }
    result_.unknown_fields_only = sound && !result_.reasons.empty();
    if (doctor.invented_sizes()) {
      result_.spec.reset();
    } else {
      CheckStoredTensors(doctor.repaired());
    }
  }

  // Checks the stored tensors against the spec. The shapes and layer numbers of a repaired
  // configuration are doubtful, so then only missing names are reported.
  void CheckStoredTensors(bool repaired) {
    std::vector<std::string> problems;
    if (result_.has_weights) {
      Try([&] { problems = TensorProblems(*result_.spec, *checkpoint_); });
      if (repaired)
        std::erase_if(problems, [](const auto& p) { return p.find(" is missing") == p.npos; });
    } else if (!format_known_ && names_.contains(result_.spec->embedding)) {
      problems = MissingModules();
    }
    if (!problems.empty()) result_.unknown_fields_only = false;
    for (const std::string& problem : problems)
      result_.reasons.push_back(directory_.string() + ": " + problem);
  }

  // Returns a problem for each module of which no tensor is stored. In an unknown format, any
  // tensor of a module may be its weight.
  std::vector<std::string> MissingModules() const {
    constexpr std::string_view kWeight = "weight";
    std::vector<std::string> problems;
    for (const TensorNeed& need : AllTensors(*result_.spec)) {
      if (need.name.find(".experts.") != need.name.npos) continue;
      std::string module = need.name;
      if (module.ends_with(".weight")) module.resize(module.size() - kWeight.size());
      const auto found = names_.lower_bound(module);
      if (found == names_.end() || !found->starts_with(module))
        problems.push_back(fmt::format("tensor {} is missing in every format", need.name));
    }
    return problems;
  }

  void DescribeWeights() {
    std::string text;
    if (result_.has_weights && result_.spec) {
      // Weights that do not fit the configuration cannot be described.
      try {
        text = DescribeStorage(*result_.spec, *checkpoint_);
      } catch (const InputError&) {
        text = result_.quantized ? checkpoint_->quantization().method() : "plain";
      }
    } else if (checkpoint_) {
      const std::string& method = checkpoint_->quantization().method();
      text = method.empty() ? "plain" : method;
    } else {
      text = format_known_ ? "cannot be opened" : "in a format that is not supported";
    }
    if (result_.has_weights) {
      text += fmt::format(", {:.2f} GB in {} file{}",
                          static_cast<double>(checkpoint_->total_bytes()) / 1e9,
                          checkpoint_->files().size(), checkpoint_->files().size() == 1 ? "" : "s");
    } else if (checkpoint_ && !checkpoint_->has_weights()) {
      text += ", according to config.json; there are no weights here";
    }
    result_.facts.emplace_back("weights", text);
  }

  UnknownConfig unknown_config_;
  fs::path directory_;
  Diagnosis& result_;
  Json config_;
  QuantizationConfig quantization_;
  bool format_known_ = false;
  std::optional<Checkpoint> checkpoint_;
  std::set<std::string> names_;  // stored tensors, if there is no checkpoint
};

}  // namespace

Diagnosis DiagnoseModel(const ModelArguments& model, const ChatArguments& chat) {
  Diagnosis result;
  try {
    result.location = ResolveModel(model.model, ProcessEnvironment(), /*needs_weights=*/false);
  } catch (const InputError& error) {
    std::error_code ignored;
    if (!fs::is_directory(model.model, ignored)) {  // no folder to examine
      result.location.id = model.model;
      result.reasons.emplace_back(error.what());
      return result;
    }
    const fs::path absolute = fs::canonical(model.model, ignored);
    result.location = {model.model, absolute.filename().string(), ""};
  }
  ModelDoctor(model, result).Run();
  if (result.spec) {
    std::vector<Fact> facts = SpecFacts(*result.spec);
    result.facts.insert(result.facts.begin(), facts.begin(), facts.end());
  }
  DiagnoseText(model, chat, result);
  return result;
}

}  // namespace oscar
