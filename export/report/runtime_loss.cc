// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/runtime_loss.h"

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

}  // namespace

Json RuntimeLoss(const Json& runtime_arm, const Json& ideal_arm) {
  Json loss = {{"arm", ideal_arm.at("name")}};
  for (const LossMember& member : kMembers) {
    const Json::json_pointer at(member.member);
    if (!runtime_arm.contains(at) || !ideal_arm.contains(at)) continue;
    loss[member.name] = runtime_arm.at(at).get<double>() - ideal_arm.at(at).get<double>();
  }
  return loss;
}

}  // namespace oscar
