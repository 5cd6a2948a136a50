// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pulls from a server that imitates the Hub (fault_server.py), both honest and malicious.
// pull_test.cc tests network faults, which can happen with any source.
#include <gtest/gtest.h>

#include <map>

#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/zoo/fault_server.h"
#include "tests/zoo/sample_zoo.h"
#include "zoo/keep/publish.h"
#include "zoo/source/hub_source.h"
#include "zoo/source/model_repository.h"
#include "zoo/source/pull.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char* kHubToken = "hf_secret";  // as in fault_server.py
const std::string kHubCommit = "c0ffeec0ffeec0ffeec0ffeec0ffeec0ffeec0ff";

class HubTest : public testing::Test {
 protected:
  HubTest() : scratch_(TestScratch("hub")), hub_(scratch_ / "hub") {
    WriteValidated(scratch_ / "a", 1);
    fs::create_directories(hub_ / "me");
    entry_ = PublishRepository(hub_ / "me/Tiny-oscar", scratch_ / "a", {}, {}).entry;
    server_.emplace(hub_, scratch_);
    options_.transfer.pause_seconds = 0.01;
    options_.transfer.token = "of-another-host";
    environment_["HF_HOME"] = (scratch_ / "home").string();
  }

  ZooSource Source(const std::string& fault = "plain", const std::string& id = "me/Tiny-oscar") {
    environment_["HF_ENDPOINT"] = server_->Url(fault);
    return HubSource(*ParseHubId(id), options_.transfer,
                     [this](const std::string& name) -> std::optional<std::string> {
                       const auto found = environment_.find(name);
                       if (found == environment_.end()) return std::nullopt;
                       return found->second;
                     });
  }
  Pulled PullWith(const std::string& fault, const std::string& id = "me/Tiny-oscar") {
    return Pull(Source(fault, id), {entry_.name}, out_, options_);
  }
  void ExpectRight() {
    EXPECT_TRUE(TreeBytes(out_) == TreeBytes(scratch_ / "a"));
    fs::remove_all(out_);
  }
  void ExpectRefused(const std::string& fault, const std::string& words,
                     const std::string& id = "me/Tiny-oscar") {
    SCOPED_TRACE(fault + " " + id);
    EXPECT_TRUE(Says(ErrorOf<Error>([&] { PullWith(fault, id); }), words));
    EXPECT_FALSE(fs::exists(out_));
  }

  const fs::path scratch_, hub_, out_ = scratch_ / "out";
  ZooEntry entry_;
  std::optional<FaultServer> server_;
  FetchOptions options_;
  std::map<std::string, std::string> environment_;
};

TEST_F(HubTest, ARepositoryIsPulledByItsCommitAndStoredFilesGetNoToken) {
  environment_["HF_TOKEN"] = kHubToken;
  WriteText(hub_ / "me/Tiny-oscar/.private", "");
  PullWith("plain");
  ExpectRight();
  size_t stored = 0;
  for (const std::string& line : server_->Requests()) {
    const bool other = line.find(" 127.0.0.2:") != std::string::npos;
    EXPECT_EQ(line.find(kHubToken) == std::string::npos, other) << line;
    EXPECT_FALSE(Says(line, "of-another-host"));
    EXPECT_EQ(line.find("/plain/cdn/") != std::string::npos, other) << line;
    EXPECT_EQ(line.find("/resolve/" + kHubCommit + "/"), line.find("/resolve/")) << line;
    stored += other ? 1 : 0;
  }
  EXPECT_GT(stored, 0u);
  EXPECT_EQ(Source().index().rows.at(0).identity, entry_.identity);
  EXPECT_GT(Source().index().rows.at(0).bits.value_or(0), 2);  // from its manifest
}

TEST_F(HubTest, ARevisionIsOneComponentOfTheAddress) {
  PullWith("plain", "me/Tiny-oscar@refs/pr/1");
  ExpectRight();
  PullWith("plain", "me/Tiny-oscar@" + kHubCommit);
  ExpectRight();
  ExpectRefused("plain", "no such repository or revision", "me/Tiny-oscar@v9");
}

TEST_F(HubTest, TheTokenIsFoundWhereTheHubsClientHasIt) {
  WriteText(hub_ / "me/Tiny-oscar/.private", "");
  ExpectRefused("plain", "HF_TOKEN");
  environment_["HF_TOKEN"] = "wrong";
  ExpectRefused("plain", "status 401");
  environment_["HF_TOKEN"] = "two\nlines";
  EXPECT_THROW(Source(), InputError);
  environment_.erase("HF_TOKEN");
  fs::create_directories(scratch_ / "home/.cache/huggingface");
  const auto found = [&](const std::string& file) {
    WriteText(scratch_ / file, std::string(kHubToken) + "\n");
    PullWith("plain");
    ExpectRight();
    fs::remove(scratch_ / file);
  };
  found("home/token");
  environment_["HF_TOKEN_PATH"] = "~/my-token";
  environment_["HOME"] = (scratch_ / "home").string();
  found("home/my-token");
  environment_.erase("HF_TOKEN_PATH");
  environment_.erase("HF_HOME");
  found("home/.cache/huggingface/token");
}

TEST_F(HubTest, ABrokenTransferGoesOnAndEveryByteIsChecked) {
  const Pulled pulled = PullWith("truncate-once");
  EXPECT_EQ(pulled.counts.bytes, entry_.bytes());
  ExpectRight();
  ExpectRefused("truncate", "repeat the command to continue there");
  EXPECT_GT(PullWith("plain").counts.resumed, 0u);
  ExpectRight();
  ExpectRefused("wrong-bytes", "the data was changed on the way");
  fs::remove_all(out_.string() + ".partial");  // valid files were kept there
  WriteText(hub_ / "me/Tiny-oscar/README.md", ReadText(scratch_ / "a/README.md") + "x");
  ExpectRefused("plain", "README.md: the server announces");
}

TEST_F(HubTest, AHubThatMeansHarmIsRefused) {
  ExpectRefused("endless!", "the file exceeds the limit of");
  ExpectRefused("endless", "");
  ExpectRefused("redirect-away!", "leads to another machine");
  ExpectRefused("redirect-file", "is not https");
  ExpectRefused("503!", "503");
  ExpectRefused("plain", "HF_TOKEN", "me/None");
  const std::string siblings = ",\"siblings\":[{\"rfilename\":\"oscar-zoo-entry.json\"}]}";
  for (const auto& [listing, words] :
       {std::pair<std::string, const char*>{"[]", "sha"},
        {"{\"sha\":\"../../x\"" + siblings, "expected a commit"},
        {"{\"sha\":\"" + kHubCommit + "\",\"siblings\":7}", "must be an array"},
        {"{\"sha\":\"" + kHubCommit + "\",\"siblings\":[7]}", "rfilename"},
        {"{\"sha\":\"" + kHubCommit + "\",\"siblings\":[]}", "oscar-zoo push writes"},
        {"{\"sha\":\"" + kHubCommit + "\"" + siblings, "the source does not have it"},
        {std::string(100, '['), ""}}) {
    WriteText(hub_ / "listing.json", listing);
    ExpectRefused("plain", words);
  }
  EXPECT_THROW(HubSource(*ParseHubId("me/x"), {},
                         [](const std::string& name) {
                           return name == "HF_ENDPOINT"
                                      ? std::optional<std::string>("http://example.org")
                                      : std::nullopt;
                         }),
               UsageError);
}

}  // namespace
}  // namespace oscar
