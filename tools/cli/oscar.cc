// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar VERB: runs the program oscar-VERB in the same folder, so that one name reaches all.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/posix_file.h"
#include "tools/cli/child_program.h"
#include "tools/cli/program_docs.h"
#include "tools/cli/verbs.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

struct VerbProgram {
  const char *verb, *program, *summary;
};
constexpr VerbProgram kVerbs[] = {
    {"calibrate", "oscar-calibrate", "Fit rotations to a model and write them as an artifact."},
    {"capture", "oscar-capture", "Write a model's queries, keys, values and attention to HDF5."},
    {"validate", "oscar-validate",
     "Measure what an artifact does to its model, and write a report."},
    {"export", "oscar-export",
     "Write the files that a runtime loads, or import a runtime's files."},
    {"zoo", "oscar-zoo", "Publish, find, pull, verify and sign artifacts."},
    {"doctor", "oscar-calibrate", "Describe a model, what will happen to it and what is missing."},
    {"bench", "oscar-bench", "Time the kernels; needs a build with the CUDA toolkit."}};

VerbCommand OscarCommand() {
  VerbCommand command{
      "oscar",
      "2-bit KV caches with rotations that are fitted to the model.",
      {},
      "Each verb is also a separate program, oscar-VERB; doctor is oscar-calibrate doctor."};
  for (const VerbProgram& verb : kVerbs)
    command.verbs.push_back({OptionTable(std::string("oscar ") + verb.verb, verb.summary), {}});
  return command;
}

// Returns the bash completion of oscar. It passes the words after a verb to the completion file of
// the verb's program, in the same folder.
std::string Completion() {
  std::string verbs;
  for (const VerbProgram& verb : kVerbs) verbs += std::string(" ") + verb.verb;
  return R"(# bash completion of oscar, made by oscar --print-completion bash
_oscar() {
  local words=")" +
         verbs.substr(1) + R"( --help --version" program=oscar-${COMP_WORDS[1]}
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[1]}"))
    return
  fi
  if [ "$program" = oscar-doctor ]; then
    program=oscar-calibrate
    COMP_WORDS=("$program" "${COMP_WORDS[@]:1}")
  else
    COMP_WORDS=("$program" "${COMP_WORDS[@]:2}")
    ((--COMP_CWORD))
  fi
  declare -F "_${program//-/_}" >/dev/null || . "${BASH_SOURCE[0]%/*}/$program" 2>/dev/null || return
  "_${program//-/_}"
}
complete -o filenames -F _oscar oscar
)";
}

// Replaces this process; returns only by an exception.
[[noreturn]] void Become(const VerbProgram& verb, char** argv) {
  const fs::path program = ProgramBeside(verb.program, std::string("oscar ") + verb.verb);
  // The command that resumes an interrupted run must begin with what the user typed.
  std::vector<std::string> arguments = {fs::path(argv[0]).replace_filename(verb.program).string()};
  if (std::string_view(verb.verb) == "doctor") arguments.emplace_back(verb.verb);
  for (char** argument = argv + 2; *argument != nullptr; ++argument)
    arguments.emplace_back(*argument);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  execv(program.c_str(), words.data());
  ThrowResource("start", program, errno);
}

int Run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    for (const VerbProgram& verb : kVerbs)
      if (!arguments.empty() && arguments[0] == verb.verb) Become(verb, argv);
  } catch (const std::exception& error) {
    return ReportFailure(error, arguments, "", ProcessConsole());
  }
  const VerbCommand command = OscarCommand();
  if (arguments == std::vector<std::string>{"--print-completion", "bash"}) {
    std::cout << Completion();
  } else if (arguments == std::vector<std::string>{"--print-man"}) {
    ProgramDocs docs{command.command, command.summary, {}, command.notes};
    for (const Verb& verb : command.verbs) docs.tables.push_back(verb.table);
    std::cout << ManPage(docs);
  } else {
    return RunVerbs(argc, argv, command);
  }
  return std::cout.flush() ? 0 : static_cast<int>(ExitCode::kResources);
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) { return oscar::Run(argc, argv); }
