// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pulls from a web server that misbehaves (fault_server.py). Each pull ends with the right bytes or
// an error that names the blob. The same pull from a sound server then completes it and fetches
// nothing twice.
#include "zoo/source/pull.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <set>
#include <sstream>

#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/zoo/fault_server.h"
#include "tests/zoo/sample_zoo.h"
#include "zoo/keep/publish.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/yank.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

const ZooName kTiny{"example", "Tiny"};

class PullTest : public testing::Test {
 protected:
  PullTest() : scratch_(TestScratch("pull")), zoo_(NewZoo(scratch_ / "zoo")) {
    WriteValidated(scratch_ / "a", 1);
    entry_ = Publish(zoo_, scratch_ / "a", {}, {}).entry;
    server_.emplace(zoo_.path(), scratch_);
    options_.transfer.pause_seconds = 0.01;
  }

  Pulled PullFrom(const std::string& address, ZooReference reference = {kTiny}) {
    return Pull(OpenSource(address, options_.transfer), reference, out_, options_);
  }
  Pulled PullWith(const std::string& fault) { return PullFrom(server_->Url(fault)); }

  void ExpectRight() {
    EXPECT_TRUE(TreeBytes(out_) == TreeBytes(scratch_ / "a"));
    EXPECT_FALSE(fs::exists(out_.string() + ".partial"));
    fs::remove_all(out_);
  }

  // Expects a failure with all of these words in its message, and that a sound server completes the
  // pull.
  void ExpectRefused(const std::string& fault, const std::vector<std::string>& words,
                     int stall_seconds = 30) {
    SCOPED_TRACE(fault);
    options_.transfer.stall_seconds = stall_seconds;
    const std::string error = ErrorOf<Error>([&] { PullWith(fault); });
    for (const std::string& word : words) EXPECT_TRUE(Says(error, word));
    EXPECT_FALSE(fs::exists(out_));
    options_.transfer.stall_seconds = 30;
    PullWith("plain");
    ExpectRight();
  }

  size_t BlobRequests() const {
    size_t count = 0;
    for (const std::string& line : server_->Requests())
      count += line.find("/blobs/") != std::string::npos ? 1 : 0;
    return count;
  }

  fs::path scratch_, out_ = scratch_ / "out";
  Zoo zoo_;
  ZooEntry entry_;
  std::optional<FaultServer> server_;
  FetchOptions options_;
};

TEST_F(PullTest, AStaticServerIsAZooAndNothingButWhatTheEntryNamesIsAsked) {
  const Pulled pulled = PullWith("plain");
  EXPECT_EQ(pulled.counts.bytes, entry_.bytes());
  ExpectRight();
  std::set<std::string> allowed = {"entries/example/Tiny/latest.json",
                                   "entries/example/Tiny/0.1.0.json",
                                   "yanked/example/Tiny/0.1.0.json"};
  for (const auto& [name, digest] : entry_.files) allowed.insert("blobs/sha256/" + digest.sha256);
  for (const std::string& line : server_->Requests()) {
    std::string method, path;
    std::istringstream(line) >> method >> path;
    EXPECT_EQ(method, "GET");
    EXPECT_EQ(allowed.count(path.substr(std::string("/plain/").size())), 1u) << line;
  }
  EXPECT_EQ(server_->Requests().size(), allowed.size());
}

TEST_F(PullTest, ByIdentityAndByVersion) {
  WriteValidated(scratch_ / "b", 2);
  Publish(zoo_, scratch_ / "b", {}, {});
  EXPECT_EQ(PullWith("plain").entry.version.text(), "0.2.0");
  fs::remove_all(out_);
  for (const std::string& source : {server_->Url("plain"), zoo_.path().string()}) {
    PullFrom(source, {kTiny, ZooVersion{0, 1, 0}});
    ExpectRight();
    PullFrom(source, {kTiny, {}, entry_.identity});
    ExpectRight();
    EXPECT_THROW(PullFrom(source, {kTiny, {}, std::string(64, 'a')}), InputError);
    EXPECT_THROW(PullFrom(source, {kTiny, ZooVersion{9, 9, 9}}), InputError);
    EXPECT_THROW(PullFrom(source, {{"no", "one"}}), InputError);
  }
}

TEST_F(PullTest, ABrokenTransferGoesOnWhereItStood) {
  // Each answer has half of what is left, so the large blobs need several.
  ExpectRefused("truncate", {"interrupted at", "blob ", "to continue there"});
  PullWith("truncate-once");
  ExpectRight();
  server_->Forget();
  EXPECT_THROW(PullWith("truncate"), ResourceError);
  const Pulled pulled = PullWith("plain");
  EXPECT_GT(pulled.counts.resumed, 0u);
  EXPECT_EQ(pulled.counts.resumed + pulled.counts.bytes + pulled.counts.reused, entry_.bytes());
  ExpectRight();
  bool ranged = false;
  for (const std::string& line : server_->Requests())
    ranged = ranged || line.find("bytes=") != std::string::npos;
  EXPECT_TRUE(ranged);
}

TEST_F(PullTest, RangesThatAreIgnoredOrWrongEndInTheRightBytes) {
  PullWith("no-range");  // cuts the first answer in half and ignores ranges
  ExpectRight();
  for (const char* fault : {"bad-range", "other-total", "refuse-range"}) {
    SCOPED_TRACE(fault);
    EXPECT_THROW(PullWith("truncate"), ResourceError);
    PullWith(fault);
    ExpectRight();
  }
}

TEST_F(PullTest, ABlobThatIsDamagedOnTheWayAloneIsFetchedAgain) {
  const Pulled pulled = PullWith("wrong-bytes-once");
  EXPECT_EQ(pulled.counts.refetched.size(), entry_.files.size());
  ExpectRight();
  ExpectRefused("wrong-bytes", {"manifest.json (blob " + entry_.identity, "SHA-256", "expected"});

  // A second call checks the files of an earlier one, one of which was damaged in the meantime.
  EXPECT_THROW(PullWith("truncate"), ResourceError);
  const fs::path partial = out_.string() + ".partial";
  fs::copy(BlobPath(zoo_.path(), entry_.identity), partial / entry_.identity,
           fs::copy_options::overwrite_existing);
  const std::string rotations = entry_.files.at(kRotationsFile).sha256;
  fs::copy(BlobPath(zoo_.path(), rotations), partial / rotations);
  std::string text = ReadText(partial / rotations);
  text[text.size() / 2] ^= 1;
  WriteText(partial / rotations, text);
  server_->Forget();
  const Pulled again = PullWith("plain");
  EXPECT_EQ(again.counts.refetched, std::vector<std::string>{kRotationsFile});
  EXPECT_GE(again.counts.reused, entry_.files.at(kManifestFile).size);
  ExpectRight();
}

TEST_F(PullTest, AServerThatLiesAboutLengthsIsRefusedBeforeItsBytesAreTaken) {
  ExpectRefused("wrong-length", {"the server announces", "expected", entry_.identity});
  ExpectRefused("short-length", {"the server announces", "expected"});
  ExpectRefused("endless", {"more than", "bytes"});
  ExpectRefused("close-early", {"interrupted at", "ended the transfer early"});
}

TEST_F(PullTest, NothingIsDecompressed) {
  ExpectRefused("gzip", {"compressed", "gzip", "was not requested"});
  ExpectRefused("gzip!", {"compressed", "entries/example/Tiny/latest.json"});
}

TEST_F(PullTest, ServersThatStallOrDripAreGivenUpInTime) {
  options_.transfer.max_failures = 1;
  const auto begin = std::chrono::steady_clock::now();
  for (const char* fault : {"stall", "silent", "loris", "header-loris", "stall!"})
    ExpectRefused(fault, {"bytes/sec"}, 1);
  ExpectRefused("header-flood", {"headers of the server's answer are too long"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST_F(PullTest, ErrorsOfTheServerAreTriedAgainWhereThatMayHelp) {
  PullWith("503-once");
  ExpectRight();
  ExpectRefused("500", {"the server answered with status 500"});
  ExpectRefused("500!", {"the server answered with status 500", "latest.json"});
  ExpectRefused("404", {"manifest.json (blob ", "does not have it"});
  ExpectRefused("403", {"403", "OSCAR_ZOO_TOKEN"});
  server_->Forget();
  ExpectRefused("400", {"400"});
  size_t asked = 0;
  for (const std::string& line : server_->Requests())
    asked += line.find("/400/blobs") != std::string::npos ? 1 : 0;
  EXPECT_EQ(asked, 1u);  // another try would not help
}

TEST_F(PullTest, RedirectsAreFewAndNeverLeaveTheScheme) {
  PullWith("redirect");
  ExpectRight();
  PullWith("redirect!");
  ExpectRight();
  ExpectRefused("redirect-loop", {"too many redirects"});
  ExpectRefused("redirect-chain", {"too many redirects"});
  ExpectRefused("redirect-file", {"is not https"});
  ExpectRefused("redirect-ftp", {"is not https"});
  ExpectRefused("redirect-away", {"leads to another machine"});
}

TEST_F(PullTest, ATokenGoesToTheHostThatWasNamedAndToNoOther) {
  options_.transfer.token = "secret-token";
  PullWith("redirect-host");
  ExpectRight();
  size_t named = 0, other = 0;
  for (const std::string& line : server_->Requests()) {
    const bool of_named = line.find(" 127.0.0.1:") != std::string::npos;
    EXPECT_NE(of_named, line.find(" 127.0.0.2:") != std::string::npos) << line;
    EXPECT_EQ(line.find("secret-token") != std::string::npos, of_named) << line;
    ++(of_named ? named : other);
  }
  EXPECT_EQ(other, entry_.files.size());  // the other host serves every blob
  EXPECT_GE(named, other);
}

TEST_F(PullTest, OnlyHttpsIsReadOverANetwork) {
  for (const char* address :
       {"http://example.org/zoo", "http://127.0.0.1.example.org/zoo", "ftp://127.0.0.1/zoo",
        "file:///etc", "https://user:word@example.org/zoo", "https://user@example.org/",
        "https://example.org/zoo?a=b", "https://example.org/zoo#x", "http://[::2]/zoo",
        "gopher://127.0.0.1/", "https://"})
    EXPECT_THROW(OpenSource(address), UsageError) << address;
  for (const char* address : {"https://example.org/zoo/", "http://127.0.0.1:8000/zoo",
                              "http://localhost/", "http://[::1]:8000"})
    EXPECT_NO_THROW(OpenSource(address)) << address;
}

TEST_F(PullTest, BlobsOfAZooOnThisDiskAreNotFetched) {
  options_.zoos = {zoo_.path()};
  const Pulled pulled = PullWith("500");
  EXPECT_EQ(pulled.counts.bytes, 0u);
  EXPECT_EQ(pulled.counts.reused, entry_.bytes());
  ExpectRight();
  EXPECT_EQ(BlobRequests(), 0u);
  WriteText(BlobPath(zoo_.path(), entry_.files.at(kReportFile).sha256), "damaged");
  options_.transfer.max_failures = 1;
  EXPECT_THROW(PullWith("plain"), InputError);  // the server has the same damaged file
}

TEST_F(PullTest, AStopKeepsWhatHasCome) {
  int calls = 0;
  options_.progress = [&](const std::string&, uint64_t, uint64_t) {
    if (++calls == 3) throw Interrupted("enough");
  };
  EXPECT_THROW(PullWith("plain"), Interrupted);
  options_.progress = nullptr;
  const Pulled pulled = PullWith("plain");
  EXPECT_GT(pulled.counts.resumed + pulled.counts.reused, 0u);
  EXPECT_LT(pulled.counts.bytes, entry_.bytes());
  ExpectRight();
}

TEST_F(PullTest, AFolderOfSomebodyElseUnderThePartialNameIsNotTouched) {
  const fs::path partial = out_.string() + ".partial";
  fs::create_directory(partial);
  WriteText(partial / "thesis.tex", "x");
  PullWith("plain");
  EXPECT_EQ(ReadText(partial / "thesis.tex"), "x");
  fs::remove_all(out_);
  fs::remove_all(partial);
  fs::create_directory(scratch_ / "elsewhere");
  fs::create_directory_symlink(scratch_ / "elsewhere", partial);
  EXPECT_THROW(PullWith("plain"), InputError);
  EXPECT_TRUE(fs::is_empty(scratch_ / "elsewhere"));
  fs::remove(partial);
  fs::create_directory(partial);
  WriteText(scratch_ / "victim", "precious");
  const fs::path part = partial / (entry_.identity + ".part");
  fs::create_symlink(scratch_ / "victim", part);
  EXPECT_THROW(PullWith("plain"), ResourceError);
  fs::remove(part);
  fs::create_hard_link(scratch_ / "victim", part);
  EXPECT_THROW(PullWith("plain"), InputError);
  EXPECT_EQ(ReadText(scratch_ / "victim"), "precious");
}

TEST_F(PullTest, AYankedVersionIsPulledOnlyByItsVersion) {
  WriteValidated(scratch_ / "b", 2);
  Publish(zoo_, scratch_ / "b", {}, {});
  Yank(zoo_, kTiny, {0, 2, 0}, "wrong template", nullptr);
  for (const std::string& source : {server_->Url("plain"), zoo_.path().string()}) {
    EXPECT_EQ(PullFrom(source).entry.version.text(), "0.1.0");
    ExpectRight();
    EXPECT_EQ(PullFrom(source, {kTiny, ZooVersion{0, 2, 0}}).yanked, "wrong template");
    fs::remove_all(out_);
  }
}

// Adds new root certificates, and server certificates for the right and for a wrong host.
class TlsTest : public PullTest {
 protected:
  TlsTest() {
    const auto run = [&](const std::string& command) {
      ASSERT_EQ(
          std::system(("cd " + scratch_.string() + " && " + command + " 2>/dev/null").c_str()), 0)
          << command;
    };
    for (const char* root : {"root", "other"}) {
      run(std::string("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
                      "-subj /CN=") +
          root + " -days 2 -keyout " + root + ".key -out " + root + ".pem");
    }
    for (const auto& [name, host] :
         {std::pair("right", "IP:127.0.0.1"), std::pair("wrong", "DNS:example.org")}) {
      run(std::string("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "
                      "/CN=server -keyout ") +
          name + ".key -out " + name + ".csr && echo subjectAltName=" + host + " > " + name +
          ".ext && openssl x509 -req -in " + name + ".csr -CA root.pem -CAkey root.key " +
          "-CAcreateserial -days 2 -extfile " + name + ".ext -out " + name + ".pem");
    }
  }
  FaultServer Serve(const std::string& name) {
    const fs::path folder = TestScratch("pull-tls-" + name);
    return {zoo_.path(),
            folder,
            {(scratch_ / (name + ".pem")).string(), (scratch_ / (name + ".key")).string()}};
  }
  void ExpectUntrusted(const FaultServer& server) {
    EXPECT_TRUE(
        Says(ErrorOf<InputError>([&] { PullFrom(server.Url("plain", "https://127.0.0.1")); }),
             "certificate"));
    EXPECT_TRUE(server.Requests().empty());
    EXPECT_FALSE(fs::exists(out_));
  }
};

TEST_F(TlsTest, ARootOfOnesOwnIsTrustedWhereItIsGiven) {
  const FaultServer right = Serve("right");
  options_.transfer.ca_file = (scratch_ / "root.pem").string();
  PullFrom(right.Url("plain", "https://127.0.0.1"));
  ExpectRight();
  PullFrom(right.Url("truncate-once", "https://127.0.0.1"));
  ExpectRight();
}

TEST_F(TlsTest, AnUnknownRootAndAWrongNameAreRefused) {
  const FaultServer right = Serve("right");
  ExpectUntrusted(right);  // its root is not the system's
  options_.transfer.ca_file = (scratch_ / "other.pem").string();
  ExpectUntrusted(right);
  options_.transfer.ca_file = (scratch_ / "root.pem").string();
  ExpectUntrusted(Serve("wrong"));
  options_.transfer.ca_file = (scratch_ / "none.pem").string();
  EXPECT_THROW(PullFrom(right.Url("plain", "https://127.0.0.1")), InputError);
}

}  // namespace
}  // namespace oscar
