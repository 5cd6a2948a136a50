// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of formats, and reports as text. Rows are tried in order. The row for model directories
// precedes those for folders of .pt files.
#include "export/formats/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/gguf/gguf_model.h"
#include "capture/checkpoint/safetensors.h"
#include "capture/files/utf8.h"
#include "export/formats/rotation_file.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

struct InspectFormat {
  std::string_view holds;  // the text for messages that list what is supported
  bool (*matches)(const std::filesystem::path& path);
  Json (*inspect)(const std::filesystem::path& path);  // throws InputError if it refuses the file
};

constexpr InspectFormat kFormats[] = {
    {"a .pt file of torch.save", IsPtFile, InspectPt},
    {"a .safetensors file", IsSafetensorsFile, InspectSafetensors},
    {"a .gguf file", IsGgufPath, InspectGguf},
    {"a model directory (model.safetensors, or shards with their index)", IsCheckpointFolder,
     InspectCheckpoint},
    {"a directory of layer_<id>.pt", IsMlaFolder, InspectMlaFolder},
    {"a directory with one k_rotation*.pt and one v_rotation*.pt", IsPairFolder, InspectPairFolder},
};

std::string Head(const std::filesystem::path& path, size_t size) {
  std::string head(size, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(head.data(), static_cast<std::streamsize>(size));
  head.resize(static_cast<size_t>(in.gcount()));
  return head;
}

Json TensorsJson(const std::map<std::string, TensorInfo, std::less<>>& tensors) {
  Json out = Json::object();
  for (const auto& [name, info] : tensors) {
    out[name] = {{"dtype", DTypeName(info.dtype)}, {"shape", info.shape}, {"bytes", info.size}};
  }
  return out;
}

Json NumberJson(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}

// Returns a value as JSON; of a long array only the first elements and the length.
Json GgufJson(const GgufFile& file, std::string_view key, const GgufValue& value) {
  constexpr size_t kMost = 16;
  if (const auto* text = std::get_if<std::string_view>(&value)) return ReplaceInvalidUtf8(*text);
  if (const auto* real = std::get_if<double>(&value)) return NumberJson(*real);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* count = std::get_if<uint64_t>(&value)) return *count;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  const auto& array = std::get<GgufArray>(value);
  Json first = Json::array();
  const auto add = [&](const auto& values, const auto& json) {
    for (size_t i = 0; i < std::min(values.size(), kMost); ++i) first.push_back(json(values[i]));
  };
  if (array.type == kString) {
    add(*file.Strings(key), ReplaceInvalidUtf8);
  } else if (array.type == kBool) {
    add(*file.Bools(key), [](bool flag) { return Json(flag); });
  } else {
    add(*file.Numbers(key), NumberJson);
  }
  if (array.count > kMost) return {{"count", array.count}, {"first", std::move(first)}};
  return first;
}

std::string Shape(const Json& shape) {
  std::string out = "[";
  for (const Json& size : shape) out += (out.size() > 1 ? ", " : "") + size.dump();
  return out + "]";
}

// Returns JSON as one line of text, shortened if it is long.
std::string Brief(const Json& value) {
  constexpr size_t kMost = 160;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() <= kMost) return text;
  return fmt::format("{}... ({} characters; --json prints all)", text.substr(0, kMost),
                     text.size());
}

class TextWriter {
 public:
  std::string Write(const Json& report) {
    const std::string format = report.at("format");
    if (format == "pair") {
      Line("K and V from the same calibration");
      Pt(report.at("k"));
      Pt(report.at("v"));
    } else if (format == "mla-folder") {
      for (const Json& file : report.at("files")) Pt(file);
    } else if (format == "pt") {
      Pt(report);
    } else {
      Tensors(report);
      const Json entries = report.value("entries", Json::object());
      for (const auto& [key, value] : entries.items())
        Line(fmt::format("  {}: {}", key, Brief(value)));
    }
    return std::move(out_);
  }

 private:
  void Line(std::string_view text) { fmt::format_to(std::back_inserter(out_), "{}\n", text); }

  void Tensors(const Json& report) {
    Line(fmt::format("{}: {}, {} tensors, {} bytes", report.at("file").get<std::string>(),
                     report.at("format").get<std::string>(), report.at("tensors").size(),
                     report.at("bytes").get<uint64_t>()));
    for (const auto& [name, tensor] : report.at("tensors").items()) {
      Line(fmt::format("  {:<48} {:<6} {}", name, tensor.at("dtype").get<std::string>(),
                       Shape(tensor.at("shape"))));
    }
  }

  void Pt(const Json& report) {
    Line(fmt::format("{}: rotation file of kind {}, {} layers",
                     report.at("file").get<std::string>(), report.at("kind").get<std::string>(),
                     report.at("layer_ids").size()));
    Line(fmt::format("  {} bytes, sha256 {}", report.at("bytes").get<uint64_t>(),
                     report.at("sha256").get<std::string>()));
    for (const auto& [key, value] : report.at("top").items()) {
      Line(fmt::format("  {}: {}", key, Brief(value)));
    }
    if (!report.at("max_abs_RRt_minus_I").is_null()) {
      Line(fmt::format("  max|R Rt - I|: {:.3g}", report.at("max_abs_RRt_minus_I").get<double>()));
    }
    if (report.contains("tensor")) Tensor("tensor", report.at("tensor"));
    if (report.contains("entry")) Entry("", report.at("entry"));
    if (report.contains("layers")) {
      for (const Json& id : report.at("layer_ids")) {
        const std::string key = id.is_string() ? id.get<std::string>() : id.dump();
        Entry(fmt::format("layer {}", key), report.at("layers").at(key));
      }
    }
  }

  void Entry(std::string_view title, const Json& entry) {
    if (!title.empty()) Line(fmt::format("  {}", title));
    for (const auto& [name, value] : entry.items()) {
      if (value.is_object() && value.contains("sha256")) {
        Tensor(name, value);
      } else if (name != "layer_id") {
        Line(fmt::format("    {:<12} {}", name, Brief(value)));
      }
    }
  }

  void Tensor(std::string_view name, const Json& tensor) {
    std::string line =
        fmt::format("    {:<12} {:<8} {:<14}", name, tensor.at("dtype").get<std::string>(),
                    Shape(tensor.at("shape")));
    if (tensor.contains("max_abs_RRt_minus_I")) {
      line += fmt::format("  max|R Rt - I| {:.2e}", tensor.at("max_abs_RRt_minus_I").get<double>());
    }
    if (tensor.contains("ascending")) {
      line += fmt::format("  from {:.6g} to {:.6g}", tensor.at("min").get<double>(),
                          tensor.at("max").get<double>());
    }
    Line(fmt::format("{}  sha256 {}", line, tensor.at("sha256").get<std::string>().substr(0, 16)));
  }

  std::string out_;
};

}  // namespace

Json InspectFile(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    throw InputError(fmt::format("{}: no such file or directory", path.string()));
  }
  std::string supported;
  for (const InspectFormat& format : kFormats) {
    if (format.matches(path)) return format.inspect(path);
    supported += fmt::format("\n  {}", format.holds);
  }
  throw InputError(fmt::format("{}: not recognised by its content; expected one of:{}",
                               path.string(), supported));
}

std::string InspectText(const Json& report) { return TextWriter().Write(report); }

bool IsPtFile(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return false;
  return path.extension() == ".pt" ||
         (path.extension() != ".safetensors" && Head(path, 4) == "PK\x03\x04");
}

bool IsSafetensorsFile(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return false;
  const std::string head = Head(path, 9);
  return path.extension() == ".safetensors" || (head.size() == 9 && head[8] == '{');
}

Json InspectSafetensors(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::Open(path);
  return {{"format", "safetensors"},
          {"file", path.filename().string()},
          {"bytes", std::filesystem::file_size(path)},
          {"metadata", file.metadata()},
          {"tensors", TensorsJson(file.tensors())}};
}

Json InspectGguf(const std::filesystem::path& path) {
  const GgufFile file = GgufFile::Open(path);
  Json entries = Json::object(), tensors = Json::object();
  for (const auto& [key, value] : file.entries)
    entries[ReplaceInvalidUtf8(key)] = GgufJson(file, key, value);
  for (const GgufTensorInfo& tensor : file.tensors) {
    const GgmlType* const type = FindGgmlType(tensor.type);
    tensors[ReplaceInvalidUtf8(tensor.name)] = {
        {"dtype", type == nullptr ? fmt::format("type {}", tensor.type) : std::string(type->name)},
        {"shape", std::vector<uint64_t>(tensor.dims.rbegin(), tensor.dims.rend())},
        {"bytes", tensor.size}};
  }
  return {{"format", "gguf"},
          {"file", path.filename().string()},
          {"bytes", std::filesystem::file_size(path)},
          {"version", file.version},
          {"entries", std::move(entries)},
          {"tensors", std::move(tensors)}};
}

bool IsCheckpointFolder(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) &&
         (std::filesystem::exists(path / "model.safetensors") ||
          std::filesystem::exists(path / "model.safetensors.index.json"));
}

Json InspectCheckpoint(const std::filesystem::path& path) {
  const Checkpoint checkpoint = Checkpoint::Open(path);
  std::map<std::string, TensorInfo, std::less<>> tensors;
  for (const std::string& name : checkpoint.names()) tensors[name] = checkpoint.info(name);
  return {{"format", "checkpoint"},
          {"file", path.filename().string()},
          {"bytes", checkpoint.total_bytes()},
          {"files", checkpoint.files()},
          {"tensors", TensorsJson(tensors)}};
}

}  // namespace oscar
