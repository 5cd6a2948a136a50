// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/export/compare_logits.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <vector>

#include "capture/dump/dump_format.h"
#include "capture/dump/hdf5_file.h"
#include "capture/files/atomic_file.h"
#include "capture/files/strict_json.h"
#include "capture/files/temporary_directory.h"
#include "linalg/base/error.h"
#include "tools/cli/child_program.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int64_t kTokens = 96;

// Returns a row of pseudo-random ids from the whole vocabulary. They serve as well as text, because
// equal models have equal logits on any tokens, and they need no tokenizer.
std::string SomeRow(const ModelSpec& spec) {
  std::vector<int64_t> ids;
  const int64_t count = spec.max_positions > 0 ? std::min(kTokens, spec.max_positions) : kTokens;
  for (int64_t i = 0; i < count; ++i) ids.push_back(i * 7919 % spec.vocab_size);
  return Json({{"input_ids", ids}}).dump() + "\n";
}

Hdf5Reader Capture(const fs::path& program, const fs::path& model, const fs::path& row,
                   const std::string& device, const fs::path& dump) {
  RunChild(program,
           {model.string(), "--data", row.string(), "--tokens", std::to_string(kTokens), "--scores",
            "none", "--logits", "--dtype", "f32", "--device", device, "--quiet",
            "--allow-small-vocabulary", "-o", dump.string()},
           fmt::format("{}: its logits could not be computed", model.string()));
  return Hdf5Reader(dump);
}

}  // namespace

std::string LogitsAgreement::Text() const {
  return fmt::format(
      "over {} tokens, the logits differ by {:.2g} of their norm (median; at most {:.2g}), and the "
      "most likely next token is the same in {:.1f} %",
      tokens, middle, worst, 100 * same_next);
}

LogitsAgreement CompareLogitsOfCopy(const fs::path& model, const fs::path& copy,
                                    const ModelSpec& spec, const std::string& device) {
  const fs::path program = ProgramBeside("oscar-capture", "comparing logits");
  const TemporaryDirectory scratch("logits");
  const fs::path row = scratch.path() / "ids.jsonl";
  WriteFileAtomically(row, SomeRow(spec));
  const Hdf5Reader expected = Capture(program, model, row, device, scratch.path() / "model.h5");
  const Hdf5Reader found = Capture(program, copy, row, device, scratch.path() / "copy.h5");

  const std::string logits(dump_format::kLogits);
  const Hdf5Shape shape = expected.dataset(logits).shape;
  LogitsAgreement agreement{.tokens = shape[0]};
  std::vector<double> apart;
  Eigen::VectorXf y(shape[1]), x(shape[1]);
  for (int64_t token = 0; token < shape[0]; ++token) {
    for (const auto& [file, values] : {std::pair(&expected, &y), std::pair(&found, &x)}) {
      file->ReadRows<float>(logits, shape, token,
                            {values->data(), static_cast<size_t>(values->size())});
    }
    Eigen::Index best_x = 0, best_y = 0;
    x.maxCoeff(&best_x);
    y.maxCoeff(&best_y);
    agreement.same_next += best_x == best_y ? 1 : 0;
    x.array() -= x.mean();
    y.array() -= y.mean();
    const double size = static_cast<double>(y.norm());
    apart.push_back(size > 0 ? static_cast<double>((x - y).norm()) / size
                             : static_cast<double>(x.norm()));
    if (!std::isfinite(apart.back()))
      throw NumericalError(fmt::format("{}: the logits of token {} are NaN or infinite",
                                       (x.allFinite() ? model : copy).string(), token));
  }
  std::ranges::sort(apart);
  agreement.middle = apart[apart.size() / 2];
  agreement.worst = apart.back();
  agreement.same_next /= static_cast<double>(apart.size());
  return agreement;
}

double AllowedByRounding(DType stored, size_t num_layers) {
  if (stored == DType::kF32) return 1e-5;
  const double unit = stored == DType::kF16 ? 0x1p-11 : 0x1p-8;
  return 2 * unit * std::sqrt(static_cast<double>(num_layers));
}

}  // namespace oscar
