// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/rope_config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kLargestHead = 2048;
constexpr std::string_view kSupported =
    "default, linear, dynamic, llama3, yarn, longrope, proportional";

// Settings that are outside the rope_scaling or rope_parameters object.
struct Outside {
  std::optional<double> theta, partial;
  std::optional<int64_t> original_max_positions;
  int64_t max_positions = 0, head_dim = 0;
  // Whether partial_rotary_factor in rope_parameters takes priority over the one outside.
  // transformers 5 writes the family's default outside, even if the two differ.
  bool inside_wins = false;
};

// Equals get_mscale in _compute_yarn_parameters of transformers 5.
double MScale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

std::vector<double> Factors(ConfigReader& reader, std::string_view key, int64_t pairs) {
  const Json* list = reader.Find(key);
  if (list == nullptr || !list->is_array() || static_cast<int64_t>(list->size()) != pairs)
    reader.Fail(key, fmt::format("must be a list of {} numbers, one for each pair", pairs));
  std::vector<double> factors;
  for (const Json& value : *list) {
    const double factor = value.is_number() ? value.get<double>() : 0;
    if (!std::isfinite(factor) || factor <= 0)
      reader.Fail(key, "must be a list of finite numbers above 0");
    factors.push_back(factor);
  }
  return factors;
}

class RopeReader {
 public:
  RopeReader(const Json& object, const std::string& what, const RopeOptions& options,
             const Outside& outside, UnknownConfig unknown)
      : object_(object),
        reader_(object, what, {.unknown_config = unknown}),
        options_(options),
        outside_(outside) {}

  RopeConfig Read() {
    const std::string type = Type();
    RopeSpec& rope = result_.rope;
    rope.layout = options_.layout;
    ReadPart(type);
    ReadTheta();
    if (type == "linear") {
      rope.kind = RopeKind::kLinear;
      rope.factor = reader_.Positive("factor");
    } else if (type == "dynamic" && options_.alpha && reader_.Find("alpha") != nullptr) {
      ReadAlpha();
    } else if (type == "dynamic") {
      rope.kind = RopeKind::kDynamic;
      rope.factor = reader_.Positive("factor");
      rope.original_max_positions = outside_.max_positions;
      if (rope.rotary_dim <= 2) reader_.Fail("rope_type", "needs more than one pair of dimensions");
    } else if (type == "llama3") {
      ReadLlama3();
    } else if (type == "yarn") {
      ReadYarn();
    } else if (type == "longrope" || type == "su") {
      ReadLongRope();
    } else if (type == "proportional" && options_.default_partial) {
      rope.kind = RopeKind::kProportional;
      rope.factor = reader_.OptionalPositive("factor").value_or(1.0);
    } else if (type != "default" && !(type == "mrope" && options_.text_of_mrope)) {
      reader_.Fail(object_.contains("rope_type") ? "rope_type" : "type",
                   fmt::format("is not implemented: rotary embedding '{}'. Supported: {}", type,
                               kSupported));
    }
    if (rope.factor < 1) reader_.Fail("factor", "must be at least 1");
    // These values are computed from several settings and must be valid float32 numbers.
    for (const auto& [name, value] :
         {std::pair("rope_theta", rope.theta),
          {"attention_factor", rope.attention_factor},
          {"mscale_all_dim", std::pow(MScale(rope.factor, result_.mscale_all_dim), 2)}}) {
      if (!(value > 0 && value <= std::numeric_limits<float>::max()))
        reader_.Fail(name,
                     fmt::format("becomes {}, but must be above 0 and fit into a float32", value));
    }
    if (options_.position_scaling) {
      result_.position_beta = reader_.OptionalPositive("llama_4_scaling_beta").value_or(0.0);
      if (result_.position_beta > 0) ReadOriginal();
      (void)reader_.Find("max_position_embeddings");  // copies the outer value
    }
    if (options_.text_of_mrope) {
      for (const char* key : {"mrope_section", "mrope_interleaved", "interleaved"})
        (void)reader_.Find(key);
    }
    result_.notes = reader_.Finish("");  // unknown fields, and fields of other types
    return result_;
  }

 private:
  // transformers used the spelling "type" before 4.45.
  std::string Type() {
    for (const auto& [key, value] : object_.items()) {
      if (value.is_object() && !value.empty()) {
        reader_.Fail(key, fmt::format("is not implemented here: a rotary embedding per layer type. "
                                      "Supported: {}",
                                      kSupported));
      }
    }
    const std::string old_spelling = reader_.String("type", "");
    const std::string type =
        reader_.String("rope_type", old_spelling.empty() ? options_.default_type : old_spelling);
    const bool plain_on_text = options_.text_of_mrope && old_spelling == "mrope";
    if (!old_spelling.empty() && old_spelling != type && !plain_on_text)
      reader_.Fail("type", "contradicts rope_type");
    return type;
  }

  // transformers: dim = int(head_dim * partial_rotary_factor); proportional keeps whole heads.
  void ReadPart(const std::string& type) {
    const double head_dim = static_cast<double>(outside_.head_dim);
    RopeSpec& rope = result_.rope;
    rope.rotary_dim = outside_.head_dim;
    if (!options_.default_partial) return;
    std::optional<double> part = reader_.OptionalPositive("partial_rotary_factor");
    if (part && outside_.partial && *part != *outside_.partial && !outside_.inside_wins)
      reader_.Fail("partial_rotary_factor",
                   fmt::format("contradicts the {} outside it", *outside_.partial));
    if (!part) part = outside_.partial;
    if (!part) part = options_.default_partial;
    if (*part > 1) reader_.Fail("partial_rotary_factor", "must be at most 1");
    if (type == "proportional") {
      rope.turning_pairs = static_cast<int64_t>(std::floor(*part * head_dim / 2));
      return;
    }
    rope.rotary_dim = static_cast<int64_t>(head_dim * *part);
    if (rope.rotary_dim % 2 != 0 || rope.rotary_dim == 0) {
      reader_.Fail("partial_rotary_factor",
                   fmt::format("gives {} rotary dimensions, which must be even and above 0",
                               rope.rotary_dim));
    }
  }

  void ReadTheta() {
    const auto own = reader_.OptionalPositive("rope_theta");
    if (own && outside_.theta && *own != *outside_.theta) {
      reader_.Fail("rope_theta",
                   fmt::format("contradicts the other rope_theta, {}", *outside_.theta));
    }
    const auto theta = own ? own : outside_.theta ? outside_.theta : options_.default_theta;
    if (!theta) reader_.Fail("rope_theta", "is missing: a number is needed");
    result_.rope.theta = *theta;
  }

  // Reads the value inside the object or the one outside; if there are both, they must agree.
  void ReadOriginal() {
    std::optional<int64_t> own;
    if (reader_.Find("original_max_position_embeddings") != nullptr)
      own = reader_.Positions("original_max_position_embeddings");
    if (own && outside_.original_max_positions && *own != *outside_.original_max_positions) {
      reader_.Fail("original_max_position_embeddings",
                   fmt::format("contradicts the {} outside it", *outside_.original_max_positions));
    }
    if (!own) own = outside_.original_max_positions;
    result_.rope.original_max_positions = own.value_or(outside_.max_positions);
  }

  void ReadLlama3() {
    RopeSpec& rope = result_.rope;
    rope.kind = RopeKind::kLlama3;
    rope.factor = reader_.Positive("factor");
    rope.low_freq_factor = reader_.Positive("low_freq_factor");
    rope.high_freq_factor = reader_.Positive("high_freq_factor");
    ReadOriginal();
    if (rope.high_freq_factor < rope.low_freq_factor) {  // Llama 4 Scout: equal, so there is no
                                                         // blending
      reader_.Fail("high_freq_factor",
                   fmt::format("must be at least low_freq_factor {}", rope.low_freq_factor));
    }
  }

  void ReadYarn() {
    RopeSpec& rope = result_.rope;
    rope.kind = RopeKind::kYarn;
    rope.factor = reader_.Positive("factor");
    rope.beta_fast = reader_.OptionalPositive("beta_fast").value_or(32.0);
    rope.beta_slow = reader_.OptionalPositive("beta_slow").value_or(1.0);
    rope.truncate = reader_.Bool("truncate", true);
    ReadOriginal();
    const auto mscale = reader_.OptionalNumber("mscale");
    const auto all_dim = reader_.OptionalNumber("mscale_all_dim");
    result_.mscale_all_dim = all_dim.value_or(0.0);
    double factor = MScale(rope.factor, 1.0);
    if (mscale.value_or(0) != 0 && all_dim.value_or(0) != 0)
      factor = MScale(rope.factor, *mscale) / MScale(rope.factor, *all_dim);
    rope.attention_factor = reader_.OptionalPositive("attention_factor").value_or(factor);
    if (rope.beta_fast < rope.beta_slow)
      reader_.Fail("beta_fast", fmt::format("must be above beta_slow {}", rope.beta_slow));
    if (rope.theta <= 1) reader_.Fail("rope_theta", "must be above 1");
  }

  // Equals HunYuanDenseV1RotaryEmbedding of transformers 5.
  void ReadAlpha() {
    const double dims = static_cast<double>(outside_.head_dim);
    if (outside_.head_dim <= 2) reader_.Fail("alpha", "needs more than one pair of dimensions");
    result_.rope.theta *= std::pow(reader_.Positive("alpha"), dims / (dims - 2));
    // Releases also set fields of other rope types, which are never used.
    for (const char* key : {"factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"})
      (void)reader_.Find(key);
  }

  // The factor on cosines is computed for the whole context and applies to short sequences too.
  void ReadLongRope() {
    RopeSpec& rope = result_.rope;
    rope.kind = RopeKind::kLongRope;
    rope.short_factor = Factors(reader_, "short_factor", rope.rotary_dim / 2);
    rope.long_factor = Factors(reader_, "long_factor", rope.rotary_dim / 2);
    ReadOriginal();
    const double original = static_cast<double>(rope.original_max_positions);
    const double factor = reader_.OptionalPositive("factor").value_or(
        static_cast<double>(outside_.max_positions) / original);
    const double attention =
        factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(original));
    rope.attention_factor = reader_.OptionalPositive("attention_factor").value_or(attention);
    if (options_.mscales) {
      rope.attention_factor = reader_.Positive("short_mscale");
      if (reader_.Positive("long_mscale") != rope.attention_factor)
        reader_.Fail("long_mscale", "is not implemented. Supported: the value of short_mscale");
    }
    if (!std::isfinite(rope.attention_factor))
      reader_.Fail("original_max_position_embeddings", "must be above 1");
  }

  const Json& object_;
  ConfigReader reader_;
  const RopeOptions& options_;
  const Outside& outside_;
  RopeConfig result_;
};

// Returns the member of rope_parameters for the layer type, or rope_parameters itself.
const Json* Parameters(ConfigReader& config, const std::string& layer_type) {
  const Json* all = config.Find("rope_parameters");
  if (all == nullptr || layer_type.empty() || !all->is_object()) return all;
  bool nested = false;
  for (const auto& [key, value] : all->items()) nested |= value.is_object();
  if (!nested && !all->empty())
    config.Fail("rope_parameters", "must have an object for each layer type");
  if (!nested) return nullptr;
  for (const auto& [key, value] : all->items()) {
    if (key != "full_attention" && key != "sliding_attention" && key != "chunked_attention")
      config.Fail("rope_parameters", fmt::format("has {} in addition to layer types", key));
  }
  const auto found = all->find(layer_type);
  if (found == all->end() || !found->is_object())
    config.Fail("rope_parameters", fmt::format("lacks the settings of {} layers", layer_type));
  return &*found;
}

bool Same(const RopeConfig& a, const RopeConfig& b) {
  return a.rope == b.rope && a.position_beta == b.position_beta;
}

}  // namespace

RopeConfig ReadRope(ConfigReader& config, int64_t head_dim, const RopeOptions& options) {
  Outside outside;
  outside.head_dim = head_dim;
  outside.max_positions = config.Positions("max_position_embeddings");
  outside.theta = config.OptionalPositive(options.theta_field);
  if (options.default_partial) {
    outside.partial = config.OptionalPositive("partial_rotary_factor");
    if (const auto dims = config.OptionalSize("rotary_dim"); dims && !outside.partial)
      outside.partial = static_cast<double>(*dims) / static_cast<double>(head_dim);
  }
  if (config.Has("original_max_position_embeddings"))
    outside.original_max_positions = config.Positions("original_max_position_embeddings");
  // Bounds memory: each layer keeps a factor for every pair if the file has factors.
  if (head_dim > kLargestHead)
    config.Fail("head_dim", fmt::format("must be at most {}, found {}", kLargestHead, head_dim));
  if (head_dim % 2 != 0)
    config.Fail("head_dim", fmt::format("must be even for a rotary embedding, found {}", head_dim));

  const Json* scaling = options.scaled ? config.Find("rope_scaling") : nullptr;
  const Json* parameters = Parameters(config, options.layer_type);
  const auto read = [&](const Json& object, const char* key) {
    const UnknownConfig unknown = config.unknown_config() == UnknownConfig::kIgnore
                                      ? UnknownConfig::kIgnore
                                      : UnknownConfig::kRefuse;  // all its fields concern rope
    RopeConfig result =
        RopeReader(object, fmt::format("{}: {}", config.what(), key), options, outside, unknown)
            .Read();
    config.AddNotes(result.notes, fmt::format("{}.", key));
    return result;
  };
  if (parameters == nullptr) {
    static const Json kNothing = Json::object();
    if (scaling == nullptr && !outside.theta && !options.default_theta)
      config.Fail(options.theta_field, "is missing: a number is needed");
    return read(scaling == nullptr ? kNothing : *scaling, "rope_scaling");
  }
  outside.inside_wins = true;
  const RopeConfig result = read(*parameters, "rope_parameters");
  outside.inside_wins = false;
  outside.theta = result.rope.theta;
  if (scaling != nullptr && !Same(read(*scaling, "rope_scaling"), result))
    config.Fail("rope_scaling", "contradicts rope_parameters");
  return result;
}

}  // namespace oscar
