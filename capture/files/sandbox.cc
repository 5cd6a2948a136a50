// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The filter lists the refused calls. They fail with EPERM, except clone3, which fails with ENOSYS
// so that the C library creates threads by clone, whose flags can be inspected.
#include "capture/files/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "capture/files/posix_file.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr scmp_datum_t kWriteFlags[] = {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC};

constexpr int kRefused[] = {
    SCMP_SYS(socket),
    SCMP_SYS(socketpair),
    SCMP_SYS(connect),
    SCMP_SYS(bind),
    SCMP_SYS(sendto),
    SCMP_SYS(sendmsg),
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(mkdirat),
    SCMP_SYS(mknodat),
    SCMP_SYS(unlinkat),
    SCMP_SYS(renameat2),
    SCMP_SYS(linkat),
    SCMP_SYS(symlinkat),
    SCMP_SYS(truncate),
    SCMP_SYS(fchmodat),
    SCMP_SYS(fchownat),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(bpf),
    SCMP_SYS(setns),
    SCMP_SYS(unshare),
    SCMP_SYS(kill),
    SCMP_SYS(pidfd_open),
    SCMP_SYS(creat),
    SCMP_SYS(mkdir),
    SCMP_SYS(mknod),
    SCMP_SYS(unlink),
    SCMP_SYS(rmdir),
    SCMP_SYS(rename),
    SCMP_SYS(renameat),
    SCMP_SYS(link),
    SCMP_SYS(symlink),
    SCMP_SYS(chmod),
    SCMP_SYS(chown),
    SCMP_SYS(fork),
    SCMP_SYS(vfork),
};

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

// Returns null if a rule could not be made. Calls that this architecture lacks need no rule.
Filter MakeFilter() {
  Filter filter(seccomp_init(SCMP_ACT_ALLOW), seccomp_release);
  if (!filter) return filter;
  bool made = seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM)) == 0 &&
              seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1) == 0;
  const auto refuse = [&](int error, int call, const std::vector<scmp_arg_cmp>& arguments) {
    made = made &&
           seccomp_rule_add_array(filter.get(), SCMP_ACT_ERRNO(static_cast<uint32_t>(error)), call,
                                  static_cast<unsigned>(arguments.size()), arguments.data()) == 0;
  };
  for (const int call : kRefused) refuse(EPERM, call, {});
  refuse(ENOSYS, SCMP_SYS(clone3), {});
  refuse(ENOSYS, SCMP_SYS(openat2), {});
  for (const scmp_datum_t flag : kWriteFlags) {
    refuse(EPERM, SCMP_SYS(openat), {SCMP_A2(SCMP_CMP_MASKED_EQ, flag, flag)});
    refuse(EPERM, SCMP_SYS(open), {SCMP_A1(SCMP_CMP_MASKED_EQ, flag, flag)});
  }
  refuse(EPERM, SCMP_SYS(clone), {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)});
  if (!made) filter.reset();
  return filter;
}

void Limit(__rlimit_resource resource, rlim_t value) {
  const rlimit limit{value, value};
  (void)setrlimit(resource, &limit);  // fails if a lower limit is already set
}

// Runs `look` and exits. If `look` throws, the child exits with the exit code of the error and
// sends its message through the pipe.
[[noreturn]] void Child(const std::function<void()>& look, int pipe) {
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, 60);
  EnterReadOnlySandbox();
  int code = 0;
  std::string text;
  try {
    look();
  } catch (const Error& error) {
    code = static_cast<int>(error.exit_code());
    text = error.what();
  } catch (const std::exception& error) {
    code = static_cast<int>(ExitCode::kInput);
    text = error.what();
  }
  text.resize(std::min<size_t>(text.size(), 4000));
  if (!text.empty() && write(pipe, text.data(), text.size()) < 0) _exit(1);
  _exit(code);
}

}  // namespace

bool EnterReadOnlySandbox() {
#if defined(__SANITIZE_ADDRESS__)
  return false;  // the leak checker needs a process of its own
#endif
  const Filter filter = MakeFilter();
  return filter && seccomp_load(filter.get()) == 0;
}

void LookInSandbox(const std::function<void()>& look, std::string_view what) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) ThrowResource("make a pipe for", what, errno);
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    ThrowResource("start a process for", what, error);
  }
  if (child == 0) Child(look, ends[1]);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t count; (count = read(ends[0], buffer.data(), buffer.size())) != 0;) {
    if (count < 0 && errno != EINTR) break;
    if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    throw InputError(
        fmt::format("{}: the process that checked this file was killed by signal {} ({}); the file "
                    "is damaged, or was made to attack programs that read it",
                    what, WTERMSIG(status), strsignal(WTERMSIG(status))));
  }
  const int code = WEXITSTATUS(status);
  if (code == 0) return;
  if (code == static_cast<int>(ExitCode::kUsage)) throw UsageError(text);
  if (code == static_cast<int>(ExitCode::kResources)) throw ResourceError(text);
  throw InputError(text.empty() ? fmt::format("{}: checking this file failed", what) : text);
}

}  // namespace oscar
