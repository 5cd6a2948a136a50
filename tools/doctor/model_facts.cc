// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes a model and the uses of its artifacts; declared in model_doctor.h. Refusals are worded
// as in the commands that refuse (capture/model/spec/use_limits.h).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "calib/consumers.h"
#include "capture/model/spec/describe_layers.h"
#include "capture/model/spec/use_limits.h"
#include "export/runtimes/exporter.h"
#include "tools/doctor/model_doctor.h"

namespace oscar {
namespace {

template <class Predicate>
bool AnyCached(const ModelSpec& spec, const Predicate& predicate) {
  return std::ranges::any_of(spec.layers,
                             [&](const LayerSpec& layer) { return predicate(layer.attention); });
}

// Returns facts that the layers' dimensions do not show.
std::vector<std::string> SpecialFacts(const ModelSpec& spec) {
  std::vector<std::string> facts;
  const auto add = [&](bool holds, std::string text) {
    if (holds) facts.push_back(std::move(text));
  };
  using Attention = const AttentionSpec&;
  add(spec.tied_head, "head and embedding share one tensor");
  add(AnyCached(spec, [](Attention a) { return a.qk_norm; }), "queries and keys are normalized");
  add(AnyCached(spec, [](Attention a) { return a.v_norm.exists(); }), "values are normalized");
  add(AnyCached(spec, [](Attention a) { return a.v_from_k; }),
      "values are computed by the projection of keys");
  add(AnyCached(spec, [](Attention a) { return a.softcap != 0; }), "a soft cap on attention");
  add(AnyCached(spec, [](Attention a) { return !a.sinks.empty(); }), "attention sinks");
  add(AnyCached(spec, [](Attention a) { return a.gated || a.gate.exists(); }), "gated attention");
  add(AnyCached(spec, [](Attention a) { return a.rope.kind == RopeKind::kNone; }),
      "layers without a rotary embedding");
  add(spec.logit_softcap != 0, "a soft cap on logits");
  add(spec.per_layer_inputs.has_value(), "embeddings for each layer");
  add(std::ranges::any_of(spec.layers, &LayerSpec::parallel),
      "attention and MLP see the same input");
  add(!spec.skipped_prefixes.empty(),
      "tensors of other modalities and of extra prediction layers are skipped by name");
  return facts;
}

}  // namespace

std::vector<Fact> SpecFacts(const ModelSpec& spec) {
  std::vector<Fact> facts;
  facts.emplace_back(
      "family",
      fmt::format("{}, {} layers ({} with a KV cache), hidden size {}, vocabulary of {}, "
                  "up to {} positions ({})",
                  spec.model_type, AllLayers(spec).size(), spec.layers.size(), spec.hidden_size,
                  spec.vocab_size, spec.max_positions, spec.positions_limit));
  facts.emplace_back("layers", fmt::format("{}", fmt::join(DescribeLayers(spec), "\n")));
  facts.emplace_back("rope", spec.rope_description);
  if (const auto special = SpecialFacts(spec); !special.empty())
    facts.emplace_back("special", fmt::format("{}", fmt::join(special, "\n")));
  if (!spec.fields.unread.empty()) {
    facts.emplace_back("unread fields",
                       fmt::format("{}: transformers stores these but never reads them",
                                   fmt::join(spec.fields.unread, ", ")));
  }
  if (!spec.fields.unknown.empty()) {
    facts.emplace_back("unknown fields",
                       fmt::format("{}: --unknown-config decides how they are treated",
                                   fmt::join(spec.fields.unknown, ", ")));
  }
  return facts;
}

std::vector<Fact> UseFacts(const ModelSpec& spec, const std::string& attention_codes) {
  const bool latent = AnyCached(spec, [](const AttentionSpec& a) { return a.latent.has_value(); });
  std::vector<std::string> runtimes;
  for (const ConsumerRules& rules : AllConsumers()) {
    if (!latent || rules.latents) runtimes.emplace_back(rules.name);
  }
  // Returns "--to sglang", or why it is refused.
  const auto line = [](std::string option, std::string_view why) {
    return why.empty() ? option : fmt::format("{} is refused: {}", option, why);
  };
  std::vector<std::string> exports;
  for (const Exporter& exporter : AllExporters()) {
    const std::string option = fmt::format("--to {}", exporter.name);
    if (!latent) {
      exports.push_back(option);
    } else if (!exporter.of_latents.empty()) {
      exports.push_back(fmt::format("{}, {}", option, exporter.of_latents));
    } else {
      exports.push_back(line(option, exporter.why_no_latents));
    }
  }
  // If queries and keys have norms, key scales are folded into these, and the projections do not
  // change.
  const bool projections = std::ranges::any_of(
      spec.layers, [](const LayerSpec& layer) { return !layer.attention.qk_norm; });
  const auto copy = [&](const char* option, const std::string& why, bool changes_projections) {
    const bool codes = why.empty() && changes_projections && !attention_codes.empty();
    exports.push_back(line(option, codes ? "attention is stored as " + attention_codes : why));
  };
  copy("--to folded-checkpoint", WhyNotFoldable(spec), projections);
  copy("--to absorbed-checkpoint", WhyNotFoldable(spec, WhyValuesNotFoldable), true);
  std::string kernels;
  for (const LayerSpec& layer : spec.layers) {
    if (kernels.empty()) kernels = WhyNotInKernels(layer);
  }
  const std::string methods =
      latent ? "all methods that can store keys and values as one row" : "all methods";
  return {{"choices for", fmt::format("--for {}", fmt::join(runtimes, ", "))},
          {"export", fmt::format("{}", fmt::join(exports, "\n"))},
          {"validation", fmt::format("{}; {}", methods,
                                     kernels.empty() ? "--kernels where there is a GPU"
                                                     : line("--kernels", kernels))}};
}

}  // namespace oscar
