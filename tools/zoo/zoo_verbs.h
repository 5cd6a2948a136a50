// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The verbs of oscar-zoo that are in separate files, and the printing that all of them share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/cli/command.h"
#include "tools/zoo/zoo_options.h"
#include "zoo/check/artifact_check.h"
#include "zoo/source/fetch.h"

namespace oscar {

using VerbFunction = CommandResult (*)(const ZooOptions&, CommandContext&);

// zoo_publish.cc
CommandResult PublishVerb(const ZooOptions& options, CommandContext& context);
CommandResult PushVerb(const ZooOptions& options, CommandContext& context);
// zoo_read.cc
CommandResult LsVerb(const ZooOptions& options, CommandContext& context);
CommandResult InfoVerb(const ZooOptions& options, CommandContext& context);
CommandResult PullVerb(const ZooOptions& options, CommandContext& context);
// zoo_find.cc
CommandResult SearchVerb(const ZooOptions& options, CommandContext& context);
CommandResult ForVerb(const ZooOptions& options, CommandContext& context);
// zoo_keep.cc
CommandResult YankVerb(const ZooOptions& options, CommandContext& context);
CommandResult GcVerb(const ZooOptions& options, CommandContext& context);
CommandResult MirrorVerb(const ZooOptions& options, CommandContext& context);
// zoo_show.cc
CommandResult DiffVerb(const ZooOptions& options, CommandContext& context);
CommandResult SiteVerb(const ZooOptions& options, CommandContext& context);

// Prints the JSON object of a verb. In text mode the verb itself prints.
void PrintJson(CommandContext& context, std::string_view verb, Json object);

// Returns the geometry of --model; nothing if it is not given.
std::optional<ModelGeometry> GeometryOf(const ZooOptions& options);

// Returns the settings for transfers, from --ca, --stall-seconds and OSCAR_ZOO_TOKEN. Ctrl-C stops
// a transfer with the message `kept`, which says what remains on disk.
TransferOptions TransferOf(const ZooOptions& options, CommandContext& context,
                           const std::string& kept = "nothing was changed");

// Resolves [SOURCE/]ORG/MODEL[@...] or hf:ORG/NAME[@REVISION] to a zoo and a reference. Without
// SOURCE the zoo is that of --zoo. Asks the Hub which version a repository holds. Throws
// UsageError, InputError, ResourceError.
struct Asked {
  ZooSource source;
  ZooReference reference;
};
Asked Ask(const std::string& text, const ZooOptions& options, const TransferOptions& transfer);

// Formats a size like "12.3 MB".
std::string ByteText(double bytes);
std::string PullLine(const std::string& source, const ZooEntry& entry);

// Shows the live line of a transfer: amount, speed and remaining time.
class TransferLine {
 public:
  TransferLine(CommandContext& context, const std::string& task);
  void Show(const std::string& file, uint64_t done, uint64_t total);  // bytes
  void Done(const FetchCounts& counts);

 private:
  CommandContext& context_;
  double begin_ = 0;               // seconds
  std::optional<uint64_t> first_;  // bytes present before the transfer
};

// Return untrusted text, made safe to print.
std::string TextMember(const Json& object, const char* key);
std::string NumberText(const std::optional<double>& number);
Json RowJson(const IndexRow& row, bool latest);  // as printed by ls --json

}  // namespace oscar
