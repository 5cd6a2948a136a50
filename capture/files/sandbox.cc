// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The filter lists the refused calls. They fail with EPERM, except clone3, which fails with ENOSYS
// so that the C library creates threads by clone, whose flags can be inspected.
#include "capture/files/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "capture/files/posix_file.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

constexpr uint32_t kWriteFlags = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;

constexpr long kRefused[] = {
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_sendto,
    SYS_sendmsg,
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_io_uring_setup,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_unlinkat,
    SYS_renameat2,
    SYS_linkat,
    SYS_symlinkat,
    SYS_truncate,
    SYS_fchmodat,
    SYS_fchownat,
    SYS_mount,
    SYS_umount2,
    SYS_bpf,
    SYS_setns,
    SYS_unshare,
    SYS_kill,
    SYS_pidfd_open,
#if defined(__x86_64__)
    SYS_creat,
    SYS_mkdir,
    SYS_mknod,
    SYS_unlink,
    SYS_rmdir,
    SYS_rename,
    SYS_renameat,
    SYS_link,
    SYS_symlink,
    SYS_chmod,
    SYS_chown,
    SYS_fork,
    SYS_vfork,
#endif
};

// Byte offset of the low half of argument `index` of a call; both architectures are little-endian.
constexpr uint32_t ArgumentOffset(int index) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args)) + 8 * static_cast<uint32_t>(index);
}

std::vector<sock_filter> Filter() {
  constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, kRefuse),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  const auto add = [&](std::initializer_list<sock_filter> lines) {
    filter.insert(filter.end(), lines);
  };
#if defined(__x86_64__)
  add({BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),  // x32 repeats the same calls
       BPF_STMT(BPF_RET | BPF_K, kRefuse)});
#endif
  for (const long call : kRefused) {
    add({BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
         BPF_STMT(BPF_RET | BPF_K, kRefuse)});
  }
  for (const long call : {SYS_clone3, SYS_openat2}) {
    add({BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)});
  }
  // Refuses the call if one of `flags` is set in the argument, or if none is.
  const auto flagged = [&](long call, int argument, uint32_t flags, bool refuse_if_set) {
    add({BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4),
         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ArgumentOffset(argument)),
         BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, static_cast<uint8_t>(refuse_if_set ? 0 : 1),
                  static_cast<uint8_t>(refuse_if_set ? 1 : 0)),
         BPF_STMT(BPF_RET | BPF_K, kRefuse), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)});
  };
  flagged(SYS_openat, 2, kWriteFlags, true);
#if defined(__x86_64__)
  flagged(SYS_open, 1, kWriteFlags, true);
#endif
  flagged(SYS_clone, 0, CLONE_THREAD, false);
  add({BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)});
  return filter;
}

void Limit(__rlimit_resource resource, rlim_t value) {
  const rlimit limit{value, value};
  (void)setrlimit(resource, &limit);  // fails if a lower limit is already set
}

// Runs `look`. The exit code is that of the Error, and its message goes through the pipe.
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
  return false;  // the leak checker uses its own process
#endif
  if (kArchitecture == 0) return false;
  static std::vector<sock_filter> filter = Filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
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
    throw InputError(fmt::format(
        "{}: the process that looked at it first died of signal {} ({}): the file is damaged, or "
        "was made to break what reads it",
        what, WTERMSIG(status), strsignal(WTERMSIG(status))));
  }
  const int code = WEXITSTATUS(status);
  if (code == 0) return;
  if (code == static_cast<int>(ExitCode::kUsage)) throw UsageError(text);
  if (code == static_cast<int>(ExitCode::kResources)) throw ResourceError(text);
  throw InputError(text.empty() ? fmt::format("{}: looking at it failed", what) : text);
}

}  // namespace oscar
