// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A library to preload: counts the calls by which a program changes files. At a chosen call it
// kills the process or makes the call fail. Trap: only calls that name or write a path below
// OSCAR_FAULT_DIR count, so that logs and libraries do not shift the points.
//
//   OSCAR_FAULT_DIR=PATH      counts calls on files below PATH
//   OSCAR_FAULT_MATCH=TEXT    counts only files whose path contains TEXT
//   OSCAR_FAULT_OPENS=1       also counts opening a file, to read or to write
//   OSCAR_FAULT_RANK=R        counts only in the process whose RANK is R
//   OSCAR_FAULT_KILL_AT=K     sends SIGKILL at the K-th call (from 1); a write is half done by then
//   OSCAR_FAULT_STRUCK=FILE   makes FILE when the fault strikes
//   OSCAR_FAULT_SIGNAL=N      sends signal N instead of SIGKILL
//   OSCAR_FAULT_SLEEP=N       sleeps for N seconds instead of sending a signal
//   OSCAR_FAULT_ENOSPC_AT=K   fails the K-th and later calls that write or create, with ENOSPC
//   OSCAR_FAULT_COUNT=FILE    writes the number of calls to FILE at exit
//   OSCAR_FAULT_ERRNO_AT=K    fails the K-th call only, with the error number OSCAR_FAULT_ERRNO=N
//   OSCAR_FAULT_FREE=BYTES    reports this much free space on all file systems (in whole fragments)
//   OSCAR_FAULT_LOG=FILE      appends "fsync PATH", "rename FROM TO", "write PATH" to FILE in order
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static long Setting(const char* name) {
  const char* text = getenv(name);
  return text ? atol(text) : 0;
}

static int OfThisRank(void) {
  const char *rank = getenv("OSCAR_FAULT_RANK"), *own = getenv("RANK");
  return !rank || (own && strcmp(rank, own) == 0);
}

static int Below(const char* path) {
  const char* directory = getenv("OSCAR_FAULT_DIR");
  const char* match = getenv("OSCAR_FAULT_MATCH");
  return OfThisRank() && directory && path && strncmp(path, directory, strlen(directory)) == 0 &&
         (!match || strstr(path, match));
}

static int FdPath(int fd, char* path, size_t size) {
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, size - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return 1;
}

static int BelowFd(int fd) {
  char path[4096];
  return FdPath(fd, path, sizeof(path)) && Below(path);
}

static void Note(const char* what, const char* from, const char* to) {
  const char* log = getenv("OSCAR_FAULT_LOG");
  FILE* file = log && from ? fopen(log, "a") : NULL;
  if (!file) return;
  fprintf(file, "%s %s%s%s\n", what, from, to ? " " : "", to ? to : "");
  fclose(file);
}

static void NoteFd(const char* what, int fd) {
  char path[4096];
  if (getenv("OSCAR_FAULT_LOG") && FdPath(fd, path, sizeof(path)) && Below(path))
    Note(what, path, NULL);
}

static void Struck(void) {
  const char* path = getenv("OSCAR_FAULT_STRUCK");
  FILE* file = path ? fopen(path, "w") : NULL;
  if (file) fclose(file);
}

/* Counts one call. Returns 1: strike now; 2: the disk is full; 3: only this call fails; else 0. */
static int Step(void) {
  const long k = atomic_fetch_add(&calls, 1) + 1;
  const long kill_at = Setting("OSCAR_FAULT_KILL_AT"), full_at = Setting("OSCAR_FAULT_ENOSPC_AT");
  if (kill_at && k == kill_at) return 1;
  if (k == Setting("OSCAR_FAULT_ERRNO_AT")) return 3;
  if (!full_at || k < full_at) return 0;
  if (k == full_at) Struck();
  return 2;
}

static void Strike(void) {
  Struck();
  const long sleep_for = Setting("OSCAR_FAULT_SLEEP"), number = Setting("OSCAR_FAULT_SIGNAL");
  if (sleep_for) {
    sleep((unsigned)sleep_for);
  } else {
    raise(number ? (int)number : SIGKILL);
  }
}

/* Strikes after doing `half` of the call, or sets errno and yields 1 if the call must fail.
   `counts`: the call counts; `writes`: it fails if the disk is full. */
#define FAILS(counts, writes, half)                           \
  (__extension__({                                            \
    const int step = (counts) ? Step() : 0;                   \
    if (step == 1) {                                          \
      half;                                                   \
      Strike();                                               \
    }                                                         \
    if (step == 3) errno = (int)Setting("OSCAR_FAULT_ERRNO"); \
    if (step == 2) errno = ENOSPC;                            \
    step == 3 || (step == 2 && (writes));                     \
  }))

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void* data, size_t size) {
  if (FAILS(BelowFd(fd), 1, (void)!REAL(write)(fd, data, size / 2))) return -1;
  return REAL(write)(fd, data, size);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  if (FAILS(BelowFd(fd), 1, (void)!REAL(pwrite)(fd, data, size / 2, offset))) return -1;
  NoteFd("write", fd);
  return REAL(pwrite)(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  if (FAILS(BelowFd(fd), 1, (void)!REAL(pwrite64)(fd, data, size / 2, offset))) return -1;
  NoteFd("write", fd);
  return REAL(pwrite64)(fd, data, size, offset);
}

static int Opens(const char* path) { return getenv("OSCAR_FAULT_OPENS") && Below(path); }

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (FAILS(Opens(path), 0, )) return -1;
  return REAL(open)(path, flags, mode);
}

int fsync(int fd) {
  if (FAILS(BelowFd(fd), 0, )) return -1;
  NoteFd("fsync", fd);
  return REAL(fsync)(fd);
}

int ftruncate(int fd, off_t size) {
  if (FAILS(BelowFd(fd), 1, )) return -1;
  return REAL(ftruncate)(fd, size);
}

int ftruncate64(int fd, off64_t size) {
  if (FAILS(BelowFd(fd), 1, )) return -1;
  return REAL(ftruncate64)(fd, size);
}

int rename(const char* from, const char* to) {
  if (FAILS(Below(to), 0, )) return -1;
  if (Below(to)) Note("rename", from, to);
  return REAL(rename)(from, to);
}

int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned int flags) {
  if (FAILS(Below(to), 0, )) return -1;
  if (Below(to)) Note("rename", from, to);
  return REAL(renameat2)(from_fd, from, to_fd, to, flags);
}

int unlink(const char* path) {
  if (FAILS(Below(path), 0, )) return -1;
  return REAL(unlink)(path);
}

int unlinkat(int fd, const char* path, int flags) {
  if (FAILS(Setting("OSCAR_FAULT_KILL_AT") && BelowFd(fd), 0, )) return -1;
  return REAL(unlinkat)(fd, path, flags);
}

int statvfs(const char* path, struct statvfs* found) {
  const int failed = REAL(statvfs)(path, found);
  if (!failed && getenv("OSCAR_FAULT_FREE"))
    found->f_bavail = (fsblkcnt_t)Setting("OSCAR_FAULT_FREE") / found->f_frsize;
  return failed;
}

__attribute__((destructor)) static void Report(void) {
  const char* path = getenv("OSCAR_FAULT_COUNT");
  if (!path || !OfThisRank()) return;
  FILE* file = fopen(path, "w");
  if (!file) return;
  fprintf(file, "%ld\n", atomic_load(&calls));
  fclose(file);
}
