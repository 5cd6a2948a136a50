// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/measures/runtime_loss.h"

namespace oscar {

Json RuntimeLoss(const Json& runtime_arm, const Json& ideal_arm) {
  constexpr std::pair<const char*, const char*> kMembers[] = {
      // name; pointer in both arms
      {"kl", "/local/kl/mean"},
      {"end_to_end_kl", "/end_to_end/kl/mean"},
      {"output_rel_error", "/local/output_rel_error"},
      {"perplexity", "/text/perplexity"},
      {"token_kl", "/text/token_kl/mean"},
      {"top1_agreement", "/text/top1_agreement"},
      {"needle", "/needle/accuracy"},
  };
  Json loss = {{"arm", ideal_arm.at("name")}};
  for (const auto& [name, pointer] : kMembers) {
    const Json::json_pointer at(pointer);
    if (runtime_arm.contains(at) && ideal_arm.contains(at))
      loss[name] = runtime_arm.at(at).get<double>() - ideal_arm.at(at).get<double>();
  }
  return loss;
}

}  // namespace oscar
