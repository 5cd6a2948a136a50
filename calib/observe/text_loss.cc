// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/observe/text_loss.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "capture/model/run/decoder_layer.h"
#include "capture/model/run/layer_weights.h"
#include "capture/model/run/weight_loader.h"

namespace oscar {
namespace {

constexpr size_t kSequencesSampled = 4;     // sequences whose beginnings are used
constexpr int64_t kTokensOfEach = 256;      // most tokens used of each
constexpr int64_t kHeadBytes = 64LL << 20;  // for one block of rows of the head
constexpr double kImplausibleShare = 0.75;  // share of ln(vocab_size)

class NoObserver : public LayerObserver {
 public:
  void OnAttention(const AttentionView& /*view*/) override {}
};

bool ReadsEarlierLayers(const ModelSpec& spec) {
  return std::ranges::any_of(spec.uncached, [&](const LayerSpec& layer) {
    return layer.attention.shared_kv && *layer.attention.shared_kv != spec.layers.back().layer_id;
  });
}

// Returns -log softmax of the next token, [n] float32, computed in blocks of the vocabulary.
// `hidden` [n, hidden_size], `ids` [n].
at::Tensor Losses(const LayerLoop& loop, const at::Tensor& hidden, const at::Tensor& ids) {
  const ModelSpec& spec = loop.spec();
  WeightLoader loader(loop.checkpoint(), {loop.device(), loop.dtype()}, loop.options().read);
  const NormWeights norm = LoadNorm(loader, spec.final_norm);
  at::Tensor bias;
  if (!spec.head.bias.empty()) bias = loader.Load(spec.head.bias);
  loader.Finish();
  const at::Tensor normed = Norm(spec.final_norm, norm, spec.rms_norm_eps, hidden);
  const auto floats = hidden.options().dtype(at::kFloat);
  at::Tensor sum = at::full({hidden.size(0)}, -INFINITY, floats);  // log-sum-exp
  at::Tensor own = at::zeros({hidden.size(0)}, floats);
  const int64_t step = std::max<int64_t>(
      1, kHeadBytes / (spec.hidden_size * static_cast<int64_t>(hidden.element_size())));
  for (int64_t first = 0; first < spec.vocab_size; first += step) {
    const int64_t count = std::min(step, spec.vocab_size - first);
    const at::Tensor weight = loader.Load(spec.head.weight, first, count);
    loader.Finish();
    at::Tensor logits =
        at::linear(normed, weight, bias.defined() ? bias.narrow(0, first, count) : bias)
            .to(at::kFloat);
    if (spec.logit_multiplier != 1) logits.mul_(spec.logit_multiplier);
    if (spec.logit_softcap != 0) logits.div_(spec.logit_softcap).tanh_().mul_(spec.logit_softcap);
    sum = at::logaddexp(sum, logits.logsumexp(1));
    const at::Tensor here = ids.ge(first).logical_and(ids.lt(first + count));
    const at::Tensor at_ids = ids.sub(first).clamp(0, count - 1).unsqueeze(1);
    own = at::where(here, logits.gather(1, at_ids).squeeze(1), own);
  }
  return sum.sub(own);
}

}  // namespace

bool TextLoss::implausible() const {
  return !(mean < kImplausibleShare * std::log(static_cast<double>(vocab_size)));
}

double TextLoss::largest_proof() const {
  return kProofShare * std::log(static_cast<double>(vocab_size));
}

std::string TextLoss::Text() const {
  std::string text =
      fmt::format("text: mean loss {:.2f} nats on {} of its tokens (guessing among {} ids: {:.2f})",
                  mean, tokens, vocab_size, std::log(static_cast<double>(vocab_size)));
  if (implausible())
    text +=
        ". This text is noise to this model, so rotations fitted to it are useless; check that "
        "tokenizer.json, the data and the chat template belong to the model";
  return text;
}

std::vector<TextBeginning> TextSampleOf(const std::vector<int64_t>& lengths) {
  std::vector<TextBeginning> sample;
  const size_t step = std::max<size_t>(1, lengths.size() / kSequencesSampled);
  for (size_t s = 0; s < lengths.size() && sample.size() < kSequencesSampled; s += step)
    if (lengths[s] > 1) sample.push_back({s, std::min(kTokensOfEach, lengths[s])});
  return sample;
}

TextRows RowsOf(const ModelSource& model, size_t own, int64_t tokens) {
  const std::vector<int64_t>& lengths = model.sequence_lengths();
  const auto before = lengths.begin() + static_cast<std::ptrdiff_t>(own);
  const int64_t first_token = std::accumulate(lengths.begin(), before, int64_t{0});
  const std::vector<int32_t>& ids = model.sequences()[own];
  return {{ids.begin(), ids.begin() + tokens}, model.hidden().narrow(0, first_token, tokens)};
}

bool HasTextLoss(const ModelSource& model) {
  return model.hidden().defined() && !ReadsEarlierLayers(model.loop().spec());
}

std::vector<TextRows> TextRowsOf(const ModelSource& model) {
  std::vector<TextRows> sample;
  if (!HasTextLoss(model)) return sample;
  for (const TextBeginning& beginning : TextSampleOf(model.sequence_lengths()))
    sample.push_back(RowsOf(model, beginning.sequence, beginning.tokens));
  return sample;
}

std::optional<TextLoss> MeasureTextLossAnew(const ModelSource& model) {
  std::vector<TextRows> sample;
  for (const auto& [sequence, tokens] : TextSampleOf(model.sequence_lengths())) {
    const std::vector<int32_t>& ids = model.sequences()[sequence];
    sample.push_back({{ids.begin(), ids.begin() + tokens}, {}});
  }
  return MeasureTextLoss(model, std::move(sample));
}

std::optional<TextLoss> MeasureTextLoss(const ModelSource& model, std::vector<TextRows> sample) {
  if (sample.empty()) return std::nullopt;
  const LayerLoop& loop = model.loop();
  LoopOptions options = loop.options();
  options.need_final_hidden = true;
  options.shared_queries = false;
  options.ranks = &OneRank();
  std::vector<std::vector<int32_t>> sequences;
  std::vector<at::Tensor> hidden;
  std::vector<int64_t> predicting, ids;  // rows in all sequences, and the tokens that follow them
  int64_t first_row = 0;
  for (const TextRows& rows : sample) {
    sequences.push_back(rows.ids);
    hidden.push_back(rows.hidden);
    for (size_t i = 0; i + 1 < rows.ids.size(); ++i) {
      predicting.push_back(first_row + static_cast<int64_t>(i));
      ids.push_back(rows.ids[i + 1]);
    }
    first_row += std::ssize(rows.ids);
  }
  ModelSource rest(loop.checkpoint(), loop.spec(), sequences, loop.device(), loop.dtype(), options);
  NoObserver observer;
  const bool anew = !hidden.front().defined();
  if (!anew) rest.Restore(at::cat(hidden));
  rest.Run(anew ? 0 : loop.spec().layers.size() - 1, observer, [](size_t) { return true; });
  const at::Tensor rows = at::tensor(predicting, at::kLong).to(loop.device());
  const at::Tensor losses = Losses(loop, rest.hidden().index_select(0, rows),
                                   at::tensor(ids, at::kLong).to(loop.device()));
  return TextLoss{.mean = losses.to(at::kDouble).mean().item<double>(),
                  .tokens = std::ssize(ids),
                  .vocab_size = loop.spec().vocab_size};
}

}  // namespace oscar
