// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/input/dump_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <numeric>

#include "capture/dump/dump_reader.h"
#include "capture/files/sandbox.h"
#include "export/formats/upstream_dump.h"
#include "linalg/base/error.h"

namespace oscar {

namespace {

// Opens a dump and reads the first and the last token of every layer.
void LookAt(const std::string& path) {
  const DumpReader dump(path);
  const std::vector<int64_t>& lengths = dump.sequence_lengths();
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  for (size_t i = 0; i < dump.layers().size(); ++i) {
    for (const DumpTensor tensor : {DumpTensor::kQ, DumpTensor::kK, DumpTensor::kV}) {
      std::vector<std::byte> row(static_cast<size_t>(dump.layers()[i].row_bytes(tensor)));
      for (const int64_t token : {int64_t{0}, tokens - 1}) dump.ReadRows(i, tensor, token, row);
    }
  }
}

}  // namespace

void AddDumpOptions(OptionTable& table, DumpArguments* dump) {
  table.Group("From a dump");
  table.Add(&dump->from, {.name = "from",
                          .help = "do not run a model, but read a dump of oscar-capture (HDF5) or "
                                  "a directory layer_<id>/{q,k,v,seq_lens}/<chunk>.pt of "
                                  "upstream's server; the data options then do not apply",
                          .scope = OptionScope::kRun,
                          .main = true,
                          .path = true});
  table.Add(&dump->skip_warmup, {.name = "skip_warmup",
                                 .help = "leave out chunk 0 of a directory, a 6-token warm-up of "
                                         "the server, as upstream's fitter does"});
  table.Add(&dump->scale, {.name = "scale",
                           .help = "the model's factor on q·k, which a directory does not store; "
                                   "by default 1 / sqrt(head_dim)",
                           .min = 1e-6,
                           .max = 1e6});
  table.Add(&dump->allow_layer_gaps,
            {.name = "allow_layer_gaps",
             .help = "accept a directory whose layer numbers are not evenly spaced"});
  table.OnlyWith({"skip_warmup", "scale", "allow_layer_gaps"}, "from");
}

std::shared_ptr<const AttentionDump> OpenDump(const DumpArguments& arguments, Log& log) {
  std::shared_ptr<const AttentionDump> dump;
  std::string left_out;
  if (std::filesystem::is_directory(arguments.from)) {
    const auto upstream = std::make_shared<UpstreamDump>(
        arguments.from, UpstreamDumpOptions{.skip_warmup = arguments.skip_warmup,
                                            .scale = arguments.scale,
                                            .allow_layer_gaps = arguments.allow_layer_gaps});
    left_out = arguments.skip_warmup
                   ? fmt::format("; chunk 0 ({} tokens) left out by --skip-warmup",
                                 upstream->skipped_tokens())
                   : "; chunk 0 kept by --no-skip-warmup";
    left_out +=
        "; it does not store the rotary embedding of the keys (rope), so automatic choices are "
        "made at the positions of its texts, and nothing is folded into weights";
    dump = upstream;
  } else {
    if (arguments.scale)
      throw UsageError("--scale works only with directories; an HDF5 dump stores its own scale");
    // A malicious file can crash the HDF5 library, so a separate process opens it first.
    LookInSandbox([&] { LookAt(arguments.from); }, arguments.from);
    dump = std::make_shared<DumpReader>(arguments.from);
  }
  const std::vector<int64_t>& lengths = dump->sequence_lengths();
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const DumpLayer& layer = dump->layers().front();
  log.Info(
      "dump",
      fmt::format("dump: {} ({}{}{}, {} layers, {}): {} tokens in {} sequences{}", dump->name(),
                  dump->origin().format, dump->origin().model.empty() ? "" : " of ",
                  dump->origin().model, dump->layers().size(), DTypeName(layer.dtype), tokens,
                  lengths.size(), left_out),
      {{"path", dump->name()},
       {"format", dump->origin().format},
       {"model", dump->origin().model},
       {"layers", dump->layers().size()},
       {"tokens", tokens},
       {"sequences", lengths.size()}});
  return dump;
}

}  // namespace oscar
