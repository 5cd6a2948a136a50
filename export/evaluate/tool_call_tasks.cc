// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/tool_call_tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>

#include "export/evaluate/needle_words.h"

namespace oscar {
namespace {

constexpr size_t kSections = 12, kKeysOfSection = 6;  // sizes of the JSON document
constexpr int64_t kCodeLines = 48;

// Draws three parts, so that names hardly ever repeat within a conversation.
std::string MakeName(SplitMix64& random) {
  const std::string_view adjective = random.Pick(NeedleAdjectives());
  const std::string_view noun = random.Pick(NeedleNouns());
  return fmt::format("{}-{}-{}", adjective, noun, random.Between(100, 999));
}

std::string MakeNumber(SplitMix64& random) {
  return std::to_string(random.Between(1000000, 9999999));
}

std::string MakeHex(SplitMix64& random) {
  return fmt::format("{:08x}-{:04x}", random.Next() >> 32, random.Next() >> 48);
}

std::string Call(std::string_view name, std::string_view arguments) {
  return fmt::format(R"({{"name": "{}", "arguments": {{{}}}}})", name, arguments);
}

// Makes a task about shipping an order that was looked up.
ToolCallQuestion CopiedArgument(SplitMix64& random) {
  const std::string customer = MakeName(random), order = MakeHex(random), paid = MakeNumber(random);
  const std::string row =
      fmt::format(R"("customer": "{}", "order": "{}", "paid": {})", customer, order, paid);
  return {{{fmt::format("Look up the order of {}.", customer),
            Call("find_order", fmt::format(R"("customer": "{}")", customer))},
           {fmt::format("Result: {{{}}}", row), "The order is there."}},
          fmt::format("Ship the order of {}, with the values that were found.", customer),
          Call("ship_order", row),
          {order, paid}};
}

// Makes a task about a name that the user gave to an account.
ToolCallQuestion DefinedName(SplitMix64& random) {
  const std::string name = MakeName(random), account = MakeNumber(random), bank = MakeHex(random);
  const std::string row =
      fmt::format(R"("name": "{}", "account": {}, "bank": "{}")", name, account, bank);
  return {{{fmt::format("From now on {} means the account {{{}}}.", name, row),
            fmt::format("{} is noted.", name)}},
          fmt::format("Send 250 to {}.", name),
          Call("send_payment", row + R"(, "amount": 250)"),
          {account, bank}};
}

struct Section {
  std::string name;
  std::vector<std::string_view> keys;
  std::vector<std::string> values;  // [keys]
  std::string Text() const {
    std::vector<std::string> entries;
    for (size_t i = 0; i < keys.size(); ++i)
      entries.push_back(fmt::format(R"("{}": {})", keys[i], values[i]));
    return fmt::format(R"("{}": {{{}}})", name, fmt::join(entries, ", "));
  }
};

Section MakeSection(SplitMix64& random) {
  Section section{MakeName(random), {}, {}};
  std::set<std::string_view> taken;
  while (section.keys.size() < kKeysOfSection) {
    const std::string_view key = random.Pick(NeedleNouns());
    if (!taken.insert(key).second) continue;
    section.keys.push_back(key);
    section.values.push_back(MakeNumber(random));
  }
  return section;
}

// Makes a task about changing one value in a document. The answer writes the whole section back.
ToolCallQuestion JsonEdit(SplitMix64& random) {
  std::vector<Section> sections;
  std::vector<std::string> lines;
  while (sections.size() < kSections) {
    sections.push_back(MakeSection(random));
    lines.push_back("  " + sections.back().Text());
  }
  Section& edited = sections[random.Below(kSections)];
  const size_t key = random.Below(kKeysOfSection);
  edited.values[key] = MakeNumber(random);
  return {{{fmt::format("This is settings.json:\n{{\n{}\n}}", fmt::join(lines, ",\n")),
            "The settings are read."}},
          fmt::format("In settings.json set {} of {} to {}, and write that section back.",
                      edited.keys[key], edited.name, edited.values[key]),
          Call("write_section", edited.Text()),
          edited.values};
}

// Makes a task about changing a number in one line of a program. The answer has the old and the new
// line.
ToolCallQuestion CodeEdit(SplitMix64& random) {
  const std::string new_number = MakeNumber(random);
  const int64_t edited = random.Between(1, kCodeLines);
  std::string listing, before, after;
  for (int64_t line = 1; line <= kCodeLines; ++line) {
    const std::string_view result = random.Pick(NeedleNouns());
    const std::string_view operation = random.Pick(NeedleAdjectives());
    const std::string_view operand = random.Pick(NeedleNouns());
    const std::string code = fmt::format("{} = {}({}, ", result, operation, operand);
    const std::string number = MakeNumber(random);
    listing += fmt::format("\n{}: {}{})", line, code, number);
    if (line != edited) continue;
    before = code + number + ")";
    after = code + new_number + ")";
  }
  return {{{"This is report.py:" + listing, "The program is read."}},
          fmt::format("In report.py change the number in line {} to {}.", edited, new_number),
          Call("replace_line",
               fmt::format(R"("line": {}, "old": "{}", "new": "{}")", edited, before, after)),
          {before, after}};
}

constexpr auto kToolCallTasks = std::to_array<ToolCallTask>({
    {"copied_argument", 2.0 / 3, CopiedArgument},
    {"defined_name", 0.1, DefinedName},  // at least 30K tokens back in conversations of 34K
    {"json_edit", 2.0 / 3, JsonEdit},
    {"code_edit", 2.0 / 3, CodeEdit},
});

}  // namespace

std::span<const ToolCallTask> ToolCallTasks() { return kToolCallTasks; }

std::string ToolCallInstruction() {
  return "Answer a request by one call, as JSON, and copy arguments exactly. The calls are "
         "find_order(customer), ship_order(customer, order, paid), "
         "send_payment(name, account, bank, amount), write_section(section) and "
         "replace_line(line, old, new).";
}

std::vector<Exchange> MakeFiller(SplitMix64& random) {
  return random.Below(2) == 0 ? CopiedArgument(random).hidden : DefinedName(random).hidden;
}

}  // namespace oscar
