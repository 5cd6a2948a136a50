// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/arm_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "export/report/html.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr size_t kColours = 6;
constexpr size_t kMaxNameCharacters = 80;

struct Word {
  std::string_view in, out;
};
constexpr Word kWords[] = {{"oscar", "OSCAR"},
                           {"int2", "INT2"},
                           {"int3", "INT3"},
                           {"int4", "INT4"},
                           {"int8", "INT8"},
                           {"bf16", "BF16"},
                           {"fp8", "FP8"},
                           {"kv", "KV"},
                           {"hadamard", "Hadamard"},
                           {"quarot", "QuaRot"},
                           {"kivi", "KIVI"},
                           {"saw", "SAW"},
                           {"kvarn", "KVarN"},
                           {"kvquant", "KVQuant"},
                           {"turboquant", "TurboQuant"},
                           {"rotatekv", "RotateKV"},
                           {"kitty", "Kitty"},
                           {"optr", "OptR"},
                           {"oct", "October"},
                           {"sglang", "SGLang"},
                           {"vllm", "vLLM"},
                           {"llamacpp", "llama.cpp"},
                           {"lm", "Lloyd-Max"}};

// Labels of methods whose names are not clear by themselves.
constexpr Word kMethods[] = {{"naive", "naive INT2"},
                             {"hadamard", "Hadamard INT2"},
                             {"hadamard_clip", "Hadamard INT2, clip"},
                             {"int4_hadamard", "Hadamard INT4"},
                             {"llama_q8_0", "llama.cpp q8_0"},
                             {"llama_q4_0", "llama.cpp q4_0"},
                             {"lmdeploy_int8", "LMDeploy INT8"},
                             {"lmdeploy_int4", "LMDeploy INT4"}};

// Assigns a method the same colour in every report. The method of the headline arm, which the page
// judges, gets the accent colour s0 and swaps colours with the method that usually has it. Unknown
// methods share the remaining colours.
class Palette {
 public:
  explicit Palette(const std::string& headline) : displaced_(Preferred(headline)) {
    colours_[headline] = 0;
  }
  std::string Of(const std::string& method) {
    const auto [it, is_new] = colours_.try_emplace(method, 0);
    if (is_new) {
      it->second = Preferred(method);
      if (it->second == 0) it->second = displaced_ == 0 ? kColours - 1 : displaced_;
    }
    return fmt::format("s{}", it->second);
  }

 private:
  size_t Preferred(const std::string& method) {
    constexpr std::string_view kKnown[] = {"oscar_per_head", "naive", "hadamard", "oscar_shared",
                                           "int4_hadamard"};
    const auto* const it = std::find(std::begin(kKnown), std::end(kKnown), method);
    if (it != std::end(kKnown)) return static_cast<size_t>(it - std::begin(kKnown));
    return kColours - 1 - unknown_++ % (kColours - 1);
  }

  size_t unknown_ = 0;
  size_t displaced_;
  std::map<std::string, size_t> colours_;
};

// Returns " 0.92" for an arm that names its clip ratio, METHOD+clip=0.92.
std::string RatioIn(const std::string& arm) {
  constexpr std::string_view kClip = "+clip=";
  const size_t begin = arm.find(kClip);
  if (begin == arm.npos) return {};
  const size_t from = begin + kClip.size();
  return " " + arm.substr(from, arm.find('+', from) - from);
}

}  // namespace

std::string MethodLabel(std::string_view method) {
  for (const Word& known : kMethods) {
    if (method == known.in) return std::string(known.out);
  }
  std::string label, word;
  const auto flush = [&] {
    if (word.empty()) return;
    for (const Word& known : kWords) {
      if (word == known.in) word = known.out;
    }
    label += (label.empty() ? "" : " ") + word;
    word.clear();
  };
  for (char c : method) {
    if (c == '_' || c == ' ') {
      flush();
    } else {
      word += c;
    }
  }
  flush();
  return label;
}

std::vector<ArmLook> LookOfArms(const Record& validation) {
  const std::string headline = validation["headline_arm"].Text();
  std::string headline_method;
  for (const Record& arm : validation["arms"].Items()) {
    if (arm["name"].Text() == headline) headline_method = arm["method"].Text();
  }
  Palette palette(headline_method);
  std::vector<ArmLook> looks;
  for (const Record& arm : validation["arms"].Items()) {
    const std::string method = arm["method"].Text();
    ArmLook look{.arm = arm, .label = {}, .chart_label = {}, .css = {}, .line_css = {}};
    look.headline = arm["name"].Text() == headline;
    look.null_control = arm["null_control"].True();
    look.windows = arm["windows"].True();
    const bool clip = arm["clip"].True(), is_reference = method == "bf16";
    look.chart_label = MethodLabel(method) + (clip ? ", clip" + RatioIn(arm["name"].Text()) : "");
    look.label = look.chart_label + (look.windows ? ", windows" : "");
    look.css = look.headline       ? "s0"
               : look.null_control ? "sn"
               : is_reference      ? "sr"
                                   : palette.Of(method);
    look.line_css = look.css + (look.headline ? " strong" : clip ? "" : " dashed");
    looks.push_back(std::move(look));
  }
  return looks;
}

std::string ArmNameHtml(const ArmLook& look) {
  return fmt::format("<span class=\"name\"><span class=\"swatch {}\"></span>{}{}</span>", look.css,
                     HtmlCut(look.label, kMaxNameCharacters),
                     look.null_control ? " <span class=\"tag\">null control</span>" : "");
}

std::string ArmRowCss(const ArmLook& look) {
  return look.headline ? "headline" : look.null_control ? "null" : "";
}

const ArmLook& HeadlineOf(const std::vector<ArmLook>& arms) {
  const auto it =
      std::find_if(arms.begin(), arms.end(), [](const ArmLook& arm) { return arm.headline; });
  OSCAR_CHECK(it != arms.end());  // CheckReport has checked this
  return *it;
}

std::string CalibrationHeadline(const Record& summary) {
  const auto arms = summary["arms"].Members();
  for (const char* name : {"auto", "oscar_per_head", "oscar_shared"}) {
    if (summary["arms"].Has(name)) return name;
  }
  return arms.empty() ? "" : arms.back().first;
}

std::vector<CalibrationArm> LookOfCalibrationArms(const Record& summary) {
  const std::string headline = CalibrationHeadline(summary);
  Palette palette(headline);
  std::vector<CalibrationArm> looks;
  for (const auto& [name, arm] : summary["arms"].Members()) {
    const bool is_clipped = name.ends_with("_clip");
    const std::string method = is_clipped ? name.substr(0, name.size() - 5) : name;
    const bool is_fitted = name.starts_with("oscar");  // fitted arms clip as the search chose
    const std::string css = palette.Of(method);
    looks.push_back({name, MethodLabel(name), css,
                     css + (name == headline          ? " strong"
                            : is_clipped || is_fitted ? ""
                                                      : " dashed")});
  }
  return looks;
}

std::string DepthCss(size_t index, size_t count) {
  return fmt::format("d{}", count < 2 ? 9 : index * 9 / (count - 1));
}

}  // namespace oscar
