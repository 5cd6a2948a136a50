// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/zoo/zoo_verbs.h"

#include <fmt/format.h>

#include <cstdlib>

#include "capture/checkpoint/model_location.h"
#include "capture/files/quote.h"

namespace oscar {

void PrintJson(CommandContext& context, std::string_view verb, Json object) {
  object["verb"] = verb;
  context.out << CanonicalJson(object);
}

std::optional<ModelGeometry> GeometryOf(const ZooOptions& options) {
  if (options.model.empty()) return std::nullopt;
  return ReadModelGeometry(ResolveModel(options.model).directory);
}

TransferOptions TransferOf(const ZooOptions& options, CommandContext& context,
                           const std::string& kept) {
  TransferOptions transfer;
  transfer.ca_file = options.ca;
  transfer.stall_seconds = options.stall_seconds;
  if (const char* token = std::getenv("OSCAR_ZOO_TOKEN"); token != nullptr) transfer.token = token;
  transfer.alive = [&context, kept] { context.stop.ThrowIfRequested(kept); };
  return transfer;
}

Asked Ask(const std::string& text, const ZooOptions& options, const TransferOptions& transfer) {
  ZooAddress address = ParseZooAddress(text);
  if (!address.source.empty() && !options.zoo.empty()) {
    throw UsageError(
        fmt::format("{} and --zoo name different zoos; give one of them", Quoted(text)));
  }
  if (address.source.empty()) address.source = ZooAddressOf(options);
  Asked asked{OpenSource(address.source, transfer), address.reference};
  if (address.repository) {
    const IndexRow row = asked.source.index().rows.at(0);
    asked.reference = {row.name};
    if (address.pinned) asked.reference.version = row.version;
  }
  return asked;
}

std::string ByteText(double bytes) {
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes / 1e3);
  return bytes < 1e9 ? fmt::format("{:.1f} MB", bytes / 1e6)
                     : fmt::format("{:.2f} GB", bytes / 1e9);
}

std::string PullLine(const std::string& source, const ZooEntry& entry) {
  return fmt::format("oscar-zoo pull {}/{}@sha256:{}", source, entry.name.text(), entry.identity);
}

std::string TextMember(const Json& object, const char* key) {
  const Json value = object.is_object() ? object.value(key, Json()) : Json();
  return value.is_string() ? Escaped(value.get<std::string>()) : value.dump();
}

std::string NumberText(const std::optional<double>& number) {
  return number ? fmt::format("{:.4g}", *number) : "-";
}

Json RowJson(const IndexRow& row, bool latest) {
  Json metrics = Json::object();
  if (row.kl) metrics["kl"] = *row.kl;
  if (row.ppl_ratio) metrics["ppl_ratio"] = *row.ppl_ratio;
  Json validation = {{"headline_arm", row.method}, {"metrics", metrics}};
  if (row.bits) validation["bits_per_element"] = *row.bits;
  if (row.gate.empty()) {
    validation["ungated"] = true;
  } else {
    validation["gate"] = {{"text", row.gate}, {"passed", true}};
  }
  Json model = {{"id", row.model}};
  if (!row.revision.empty()) model["revision"] = row.revision;
  if (!row.config_sha256.empty()) model["config"] = {{"sha256", row.config_sha256}};
  Json json = {{"name", row.name.text()},
               {"version", row.version.text()},
               {"latest", latest},
               {"identity", row.identity},
               {"bytes", row.bytes},
               {"model", model},
               {"validation", validation},
               {"runtimes", row.runtimes},
               {"publisher", {{"published_at_unix", row.published_at}}}};
  if (!row.yanked.empty()) json["yanked"] = row.yanked;
  return json;
}

TransferLine::TransferLine(CommandContext& context, const std::string& task) : context_(context) {
  context_.progress.Begin(task, 1);
  begin_ = context_.log.console().seconds();
}

void TransferLine::Show(const std::string& file, uint64_t done, uint64_t total) {
  const double seconds = context_.log.console().seconds() - begin_;
  if (!first_) first_ = done;
  std::string text = fmt::format("{}, {} of {}", file, ByteText(static_cast<double>(done)),
                                 ByteText(static_cast<double>(total)));
  if (seconds > 0.5 && done > *first_) {
    const double rate = static_cast<double>(done - *first_) / seconds;
    text += fmt::format(", {}/s, {} left", ByteText(rate),
                        Duration(static_cast<double>(total - done) / rate));
  }
  context_.progress.Update(static_cast<double>(done) / static_cast<double>(total), text);
}

void TransferLine::Done(const FetchCounts& counts) {
  const double seconds = context_.log.console().seconds() - begin_;
  const auto bytes = static_cast<double>(counts.bytes);
  std::string line = fmt::format("{} fetched in {:.1f} s", ByteText(bytes), seconds);
  if (seconds > 0.1) line += fmt::format(", {}/s", ByteText(bytes / seconds));
  if (counts.resumed > 0) {
    line += fmt::format(", {} were left from an earlier call",
                        ByteText(static_cast<double>(counts.resumed)));
  }
  if (counts.reused > 0)
    line += fmt::format(", {} were already here", ByteText(static_cast<double>(counts.reused)));
  context_.progress.StepDone(line, {{"bytes", counts.bytes},
                                    {"resumed_bytes", counts.resumed},
                                    {"reused_bytes", counts.reused},
                                    {"seconds", seconds}});
  context_.progress.End();
}

}  // namespace oscar
