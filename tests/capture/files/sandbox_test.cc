// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests which operations the kernel still allows in the sandbox.
#include "capture/files/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Returns the message with which `look` threw in the sandbox, or "".
std::string Look(const std::function<void()>& look) {
  return ErrorOf<InputError>([&] { LookInSandbox(look, "thing"); });
}

bool HasFilters() {
  return Look([] {
           if (!EnterReadOnlySandbox()) throw InputError("none");
         }) == "";
}

TEST(Sandbox, NoNetworkNoNewFilesNoPrograms) {
  if (!HasFilters())
    GTEST_SKIP() << "the kernel has no seccomp filters, or a sanitizer needs them off";
  const std::filesystem::path scratch = TestScratch("sandbox");
  std::ofstream(scratch / "old") << "text";
  const auto refused = [](int result) {
    if (result != -1 || errno != EPERM) throw InputError("allowed");
  };
  const std::string old = scratch / "old", fresh = scratch / "new";
  EXPECT_EQ(Look([&] { refused(socket(AF_INET, SOCK_STREAM, 0)); }), "");
  EXPECT_EQ(Look([&] { refused(open(fresh.c_str(), O_WRONLY | O_CREAT, 0600)); }), "");
  EXPECT_EQ(Look([&] { refused(open(old.c_str(), O_RDWR)); }), "");
  EXPECT_EQ(Look([&] { refused(unlink(old.c_str())); }), "");
  EXPECT_EQ(Look([&] { refused(rename(old.c_str(), fresh.c_str())); }), "");
  EXPECT_EQ(Look([&] { refused(mkdir(fresh.c_str(), 0700)); }), "");
  EXPECT_EQ(Look([&] { refused(execl("/bin/true", "true", nullptr)); }), "");
  EXPECT_EQ(Look([&] { refused(fork()); }), "");
  EXPECT_TRUE(std::filesystem::exists(old));
  EXPECT_FALSE(std::filesystem::exists(fresh));
  // A function in the sandbox needs threads and reads of existing files, which must still work.
  EXPECT_EQ(Look([&] {
              int descriptor = -1;
              std::thread([&] { descriptor = open(old.c_str(), O_RDONLY); }).join();
              char text[4] = {};
              if (read(descriptor, text, 4) != 4 || text[0] != 't') throw InputError("not read");
            }),
            "");
}

TEST(Sandbox, ErrorsAndDeathsAreTold) {
  EXPECT_EQ(Look([] { throw InputError("file x: broken at byte 7"); }), "file x: broken at byte 7");
  EXPECT_THROW(LookInSandbox([] { throw UsageError("no"); }, "thing"), UsageError);
  EXPECT_THROW(LookInSandbox([] { throw ResourceError("no"); }, "thing"), ResourceError);
  EXPECT_EQ(Look([] { throw std::runtime_error("odd"); }), "odd");
  EXPECT_TRUE(Says(Look([] {
                     std::signal(SIGSEGV, SIG_DFL);
                     std::raise(SIGSEGV);
                   }),
                   "thing: the process that checked this file was killed by signal 11"));
}

}  // namespace
}  // namespace oscar
