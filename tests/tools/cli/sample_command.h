// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A sample command with an option of every type: the worked example of tools/README.md, which the
// tests of this folder run.
#pragma once

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tools/cli/console.h"
#include "tools/cli/option_table.h"

namespace oscar {

enum class BrewMethod { kDrip, kPress };

struct BrewOptions {
  std::string bean;
  std::string output;
  int64_t cups = 2;
  uint16_t port = 80;
  double ratio = 0.0625;
  bool milk = false;
  bool filter = true;
  bool restart = false;
  int64_t taste = 0;
  std::string grinder = "burr";
  BrewMethod method = BrewMethod::kDrip;
  std::optional<int64_t> seed;
  std::optional<double> heat;
  std::optional<std::string> note;
  std::vector<std::string> spice;
  std::vector<int64_t> pours = {30, 60};
  std::vector<double> weights;
  std::vector<std::string> merge, jars;
};

inline OptionTable BrewTable(BrewOptions* o) {
  OptionTable table("oscar-brew", "Brews coffee from beans");
  table.Group("Beans");
  table.Add(&o->bean,
            {.name = "bean", .help = "The bean to brew", .positional = true, .required = true});
  table.Add(&o->cups, {.name = "cups",
                       .help = "How much",
                       .unit = "cups",
                       .short_name = 'n',
                       .min = 1,
                       .max = 12,
                       .main = true});
  table.Add(&o->port, {.name = "port", .help = "Of the machine"});
  table.Add(&o->ratio, {.name = "ratio", .help = "Coffee by water", .min = 0.0});
  table.Add(&o->grinder, {.name = "grinder", .help = "What grinds", .choices = {"burr", "blade"}});
  table.AddChoice(&o->method, {{"drip", BrewMethod::kDrip}, {"press", BrewMethod::kPress}},
                  {.name = "method", .help = "How to brew"});
  table.Group("Extras");
  table.Add(&o->milk, {.name = "milk", .help = "Add milk"});
  table.Add(&o->filter, {.name = "paper_filter", .help = "Use paper"});
  table.Add(&o->seed, {.name = "seed", .help = "Of the shuffle"});
  table.Add(&o->heat, {.name = "heat", .help = "Water temperature", .unit = "degrees"});
  table.Add(&o->note, {.name = "note", .help = "On the cup"});
  table.Add(&o->spice, {.name = "spice", .help = "What else goes in", .verbatim = true});
  table.Add(&o->pours, {.name = "pours",
                        .help = "When to pour",
                        .unit = "seconds",
                        .min = 0,
                        .check = [](const Json& value) {
                          return value.size() > 3 ? std::string("expected at most 3 pours")
                                                  : std::string();
                        }});
  table.Add(&o->weights, {.name = "weights", .help = "Of each cup"});
  table.Add(&o->merge, {.name = "merge", .help = "Earlier brews"});
  table.Add(&o->jars, {.name = "jars", .help = "Files of beans", .path = true});
  table.Group("Run");
  table.Add(&o->output, {.name = "output",
                         .help = "Where the cup goes; not to the table",
                         .unit = "path",
                         .short_name = 'o',
                         .scope = OptionScope::kRun,
                         .main = true});
  table.Add(
      &o->restart,
      {.name = "restart", .help = "Begin anew", .scope = OptionScope::kRun, .only_once = true});
  table.Add(&o->taste, {.name = "taste", .help = "Try this many first", .only_once = true});
  table.OnlyWith({"heat"}, "method", "press");
  table.OnlyWith({"taste"}, "paper_filter");
  table.OnlyWith({"weights"}, "spice");
  table.NotWith({"jars"}, "merge", "the earlier brews have their beans");
  table.NotWhere(
      {"port"}, "merge", [](const Json& brews) { return brews.size() > 2; }, "they are too many");
  table.Example("oscar-brew arabica -n 4", "Four cups");
  return table;
}

// The exit code and output of a program that runs in this process. `run` is given argc, argv and a
// console that writes here.
struct Outcome {
  int exit_code;
  std::string out, err;
};

template <typename Run>
Outcome RunCaptured(const char* program, const std::vector<std::string>& arguments, Run run) {
  std::ostringstream out, err;
  Console console;
  console.out = &out;
  console.err = &err;
  console.seconds = [] { return 0.0; };
  console.utc = [] { return std::string("now"); };
  std::vector<const char*> argv = {program};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  const int exit_code = run(static_cast<int>(argv.size()), argv.data(), console);
  return {exit_code, out.str(), err.str()};
}

}  // namespace oscar
