// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Sets how long LibTorch's worker threads spin after their work before they sleep. libgomp's
// default is a millisecond. If other processes need the core of a spinning worker, a program then
// takes several times as long. A program linked with this file starts with GOMP_SPINCOUNT in its
// environment, unless the user set that or OMP_WAIT_POLICY.
//
// Traps: libgomp reads its environment when it is loaded, so the program restarts itself before
// that. The section that does this is only allowed in a program, not in a shared library.
#include <unistd.h>

#include <climits>
#include <cstring>

namespace oscar {
namespace {

constexpr const char kSpinCount[] = "GOMP_SPINCOUNT=1000", kPolicy[] = "OMP_WAIT_POLICY=";

bool Sets(const char* variable, const char* name_and_more) {
  const size_t name = static_cast<size_t>(std::strchr(name_and_more, '=') - name_and_more) + 1;
  return std::strncmp(variable, name_and_more, name) == 0;
}

// Runs before the constructors of all libraries, so it uses only system calls and its own memory.
__attribute__((no_sanitize("address", "thread", "undefined"))) void BeforeLibraries(
    int, char** argv, char** variables) {
  size_t count = 0;
  for (; variables[count] != nullptr; ++count)
    if (Sets(variables[count], kSpinCount) || Sets(variables[count], kPolicy)) return;
  char** more = static_cast<char**>(__builtin_alloca((count + 2) * sizeof(char*)));
  for (size_t i = 0; i < count; ++i) more[i] = variables[i];
  more[count] = const_cast<char*>(kSpinCount);
  more[count + 1] = nullptr;
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length < 0) return;
  program[length] = '\0';
  execve(program, argv, more);  // returns only if it fails; then workers spin long
}

__attribute__((section(".preinit_array"),
               used)) void (*const g_before_libraries)(int, char**, char**) = BeforeLibraries;

}  // namespace

}  // namespace oscar
