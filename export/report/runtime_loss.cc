// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/runtime_loss.h"

#include <optional>

namespace oscar {
namespace {

struct LossMember {
  const char* name;    // of the difference
  const char* member;  // JSON pointer in both arms
};
constexpr LossMember kMembers[] = {
    {"kl", "/local/kl/mean"},
    {"end_to_end_kl", "/end_to_end/kl/mean"},
    {"output_rel_error", "/local/output_rel_error"},
    {"perplexity", "/text/perplexity"},
    {"token_kl", "/text/token_kl/mean"},
    {"top1_agreement", "/text/top1_agreement"},
    {"needle", "/needle/accuracy"},
};

std::optional<double> NumberAt(const Json& arm, const char* pointer) {
  const Json::json_pointer at(pointer);
  return arm.contains(at) ? std::optional(arm.at(at).get<double>()) : std::nullopt;
}
std::optional<double> NumberAt(const JsonElement& arm, const char* pointer) {
  double number = 0;
  const bool there = arm.at_pointer(pointer).get(number) == simdjson::SUCCESS;
  return there ? std::optional(number) : std::nullopt;
}

template <typename Arm>
Json LossOf(const Arm& runtime_arm, const Arm& ideal_arm, Json loss) {
  for (const LossMember& member : kMembers) {
    const std::optional<double> runtime = NumberAt(runtime_arm, member.member),
                                ideal = NumberAt(ideal_arm, member.member);
    if (runtime && ideal) loss[member.name] = *runtime - *ideal;
  }
  return loss;
}

}  // namespace

Json RuntimeLoss(const Json& runtime_arm, const Json& ideal_arm) {
  return LossOf(runtime_arm, ideal_arm, {{"arm", ideal_arm.at("name")}});
}
Json RuntimeLoss(const JsonElement& runtime_arm, const JsonElement& ideal_arm) {
  return LossOf(runtime_arm, ideal_arm, {{"arm", ideal_arm["name"].get_string().value()}});
}

}  // namespace oscar
