// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/rotation_refinement.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "calib/search/refinement_loss.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

using Samples = std::vector<RefinementSample>;
// Returns the loss of each KV head.  // [num_kv_heads]
using Loss = std::function<at::Tensor(const RefinementSample&, const HeadTransforms&)>;

// Returns B F and its inverse, where `factor` is F = expm(A - A^T).
HeadTransforms Turned(const HeadTransforms& start, const at::Tensor& factor) {
  HeadTransforms turned = {at::matmul(start.transform, factor), {}};
  if (start.inverse.defined()) turned.inverse = at::matmul(factor.transpose(1, 2), start.inverse);
  return turned;
}

at::Tensor Factor(const at::Tensor& a) { return at::linalg_matrix_exp(a - a.transpose(1, 2)); }

HeadTransforms To(const HeadTransforms& transforms, const at::TensorOptions& options,
                  int64_t heads) {
  const auto expand = [&](const at::Tensor& x) {
    return x.defined() ? x.to(options).expand({heads, -1, -1}).contiguous() : x;
  };
  return {expand(transforms.transform), expand(transforms.inverse)};
}

at::Tensor MeanLoss(const Loss& loss, const Samples& samples, const HeadTransforms& transforms) {
  at::Tensor sum;
  for (const RefinementSample& sample : samples) {
    const at::Tensor value = loss(sample, transforms).detach();
    sum = sum.defined() ? sum + value : value;
  }
  return sum.div(static_cast<double>(samples.size())).to(at::kCPU, at::kDouble);
}

// The Adam optimizer (Kingma and Ba 2015).
class Adam {
 public:
  Adam(const at::Tensor& parameter, double learning_rate)
      : parameter_(parameter),
        rate_(learning_rate),
        mean_(at::zeros_like(parameter)),
        square_(at::zeros_like(parameter)) {}

  void Step(double share) {  // share of the learning rate
    const at::NoGradGuard no_grad;
    const at::Tensor gradient = parameter_.grad();
    ++step_;
    mean_.mul_(kBeta1).add_(gradient, 1 - kBeta1);
    square_.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    const at::Tensor root = square_.div(1 - std::pow(kBeta2, step_)).sqrt_().add_(1e-8);
    parameter_.addcdiv_(mean_, root, -share * rate_ / (1 - std::pow(kBeta1, step_)));
    parameter_.mutable_grad().reset();
  }

 private:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
  at::Tensor parameter_;
  double rate_;
  at::Tensor mean_, square_;
  int step_ = 0;
};

// Adds the gradients of a mean loss to A. The mean is over `count` samples from `first` on,
// continuing at the first sample after the last. Samples are processed one at a time, so that only
// one autograd graph is in memory.
void Backward(const Loss& loss, const Samples& samples, size_t first, size_t count,
              const HeadTransforms& start, const at::Tensor& a) {
  const at::Tensor factor = Factor(a);
  const at::Tensor leaf = factor.detach().requires_grad_(true);
  for (size_t i = first; i < first + count; ++i) {
    const RefinementSample& sample = samples[i % samples.size()];
    loss(sample, Turned(start, leaf)).sum().div(static_cast<double>(count)).backward();
  }
  factor.backward(leaf.grad());
}

RefinedSide Refine(const Loss& loss, const Samples& fit, const Samples& held_out,
                   const HeadTransforms& given, int64_t heads, int64_t sequences_per_step,
                   const RefinementOptions& options) {
  const auto float64 = fit.at(0).keys.options().dtype(at::kDouble);
  const auto float32 = float64.dtype(at::kFloat);
  // The result is computed in float64 and rounded once. It is measured after rounding.
  const HeadTransforms exact = To(given, float64, heads);
  const HeadTransforms start = To(given, float32, heads);
  const int64_t dim = start.transform.size(-1);
  HeadTransforms best = To(exact, float32, heads);
  const at::Tensor before = MeanLoss(loss, held_out, best);
  at::Tensor after = before.clone();

  const at::Tensor a = at::zeros({heads, dim, dim}, float32).requires_grad_(true);
  Adam adam(a, options.learning_rate);
  const auto asked = static_cast<size_t>(sequences_per_step);
  const size_t count = asked == 0 ? fit.size() : std::min(asked, fit.size());
  for (int step = 1; step <= options.steps; ++step) {
    {
      const at::AutoGradMode with_gradients(true);
      Backward(loss, fit, static_cast<size_t>(step - 1) * count, count, start, a);
    }
    adam.Step(1 - static_cast<double>(step - 1) / options.steps);
    if (step % options.check_every != 0 && step != options.steps) continue;
    const at::Tensor turn = Factor(a.detach().to(at::kDouble));
    const HeadTransforms now = To(Turned(exact, turn), float32, heads);
    const at::Tensor losses = MeanLoss(loss, held_out, now);
    const at::Tensor better = losses.lt(after);  // false for NaN
    after = at::where(better, losses, after);
    const at::Tensor heads_better = better.to(float64.device()).view({-1, 1, 1});
    best.transform = at::where(heads_better, now.transform, best.transform);
    if (best.inverse.defined()) best.inverse = at::where(heads_better, now.inverse, best.inverse);
  }

  const auto list = [](const at::Tensor& x) {
    return std::vector<double>(x.const_data_ptr<double>(), x.const_data_ptr<double>() + x.numel());
  };
  return {std::move(best), list(before), list(after)};
}

void CheckRows(const RefinementProblem& problem) {
  if (!problem.rows.fit.empty() && !problem.rows.held_out.empty()) return;
  throw InputError(
      "refining rotations needs some sequences to fit to and others to check on; give more data");
}

}  // namespace

RefinementRows SplitRows(std::vector<RefinementSequence> sequences) {
  if (sequences.empty() || (sequences.size() == 1 && sequences[0].k.size(0) < 2))
    throw InputError(
        "refining rotations needs calibration rows of at least two tokens; give more data");
  if (sequences.size() == 1) {
    const RefinementSequence& all = sequences[0];
    const int64_t middle = all.k.size(0) / 2;
    const auto part = [&](int64_t begin, int64_t end) {
      return RefinementSequence{
          all.q.slice(0, begin, end), all.k.slice(0, begin, end), all.v.slice(0, begin, end),
          all.counted.defined() ? all.counted.slice(0, begin, end) : at::Tensor()};
    };
    return {{part(0, middle)}, {part(middle, all.k.size(0))}};
  }
  const auto fit = static_cast<std::ptrdiff_t>(sequences.size() - (sequences.size() + 3) / 4);
  return {{sequences.begin(), sequences.begin() + fit}, {sequences.begin() + fit, sequences.end()}};
}

RefinedSide RefineKeys(const RefinementProblem& problem, const HeadTransforms& start,
                       const RefinementOptions& options) {
  CheckRows(problem);
  const RefinementLoss losses(problem, options, problem.rows.fit[0].k.device());
  const auto samples = [&](const std::vector<RefinementSequence>& sequences) {
    Samples prepared;
    for (const RefinementSequence& rows : sequences) prepared.push_back(losses.PrepareKeys(rows));
    return prepared;
  };
  const Loss loss = [&](const RefinementSample& sample, const HeadTransforms& transforms) {
    return losses.Keys(sample, transforms);
  };
  return Refine(loss, samples(problem.rows.fit), samples(problem.rows.held_out), start,
                problem.attention.num_kv_heads, options.k_sequences_per_step, options);
}

RefinedSide RefineValues(const RefinementProblem& problem, const HeadTransforms& start,
                         const HeadTransforms& keys, const RefinementOptions& options) {
  CheckRows(problem);
  const int64_t heads = problem.attention.num_kv_heads;
  const auto float32 = problem.rows.fit[0].k.options().dtype(at::kFloat);
  const HeadTransforms stored_keys = To(keys, float32, heads);
  const RefinementLoss losses(problem, options, float32.device());
  const auto samples = [&](const std::vector<RefinementSequence>& sequences, int64_t tokens) {
    Samples prepared;
    for (const RefinementSequence& rows : sequences)
      prepared.push_back(losses.PrepareValues(rows, stored_keys, tokens));
    return prepared;
  };
  const Loss loss = [&](const RefinementSample& sample, const HeadTransforms& transforms) {
    return losses.Values(sample, transforms);
  };
  return Refine(loss, samples(problem.rows.fit, options.value_tokens),
                samples(problem.rows.held_out, 0), start, heads, options.v_sequences_per_step,
                options);
}

}  // namespace oscar
