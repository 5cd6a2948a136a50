// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests a site over time: who signed, which pages are kept, and how a browser shows it
// (site_check.py). zoo_forms_test.cc tests what the pages say.
#include "zoo/show/site.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "export/report/comparison.h"
#include "tests/export/report/sample_report.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"
#include "tests/zoo/sample_zoo.h"
#include "tests/zoo/signing/sample_keys.h"
#include "zoo/keep/publish.h"
#include "zoo/show/entry_diff.h"
#include "zoo/store/yank.h"
#include "zoo/trust/signature_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

class SiteTest : public testing::Test {
 protected:
  SiteTest() : scratch_(TestScratch("site")), zoo_(NewZoo(scratch_ / "zoo")) {
    WriteValidated(scratch_ / "a", 1);
    for (const char* name :
         {"example/Tiny", "example/Other", "second/Tiny-with-a-long-name_and.more"}) {
      PublishOptions options;
      options.name = ParseZooName(name, "test");
      entries_.push_back(Publish(zoo_, scratch_ / "a", {}, options).entry);
    }
  }
  Site Make() { return WriteSite(zoo_, site_, options_); }
  std::string Page(const std::string& name) {
    return ReadText(site_ / "models" / name / "index.html");
  }

  const fs::path scratch_, site_ = scratch_ / "site";
  Zoo zoo_;
  std::vector<ZooEntry> entries_;
  SiteOptions options_{.url = "https://zoo.example.org", .made_by = "test"};
};

TEST_F(SiteTest, PagesSayWhoSigned) {
  const Signer alice = NewSigner();
  const Issuer root = NewRoot();
  AddSignature(zoo_, entries_[0], alice, nullptr);
  AddSignature(zoo_, entries_[1],
               CertifiedSigner(Issued(root, {.subject = "A <b> & co", .names = ""})), nullptr);
  Make();
  const std::string id = alice.key.public_key().id();
  EXPECT_NE(Page("example/Tiny").find("not checked: key " + id.substr(0, 16)), std::string::npos);
  EXPECT_NE(Page("example/Other").find("not checked: A &lt;b&gt; &amp; co"), std::string::npos);
  EXPECT_NE(Page("second/Tiny-with-a-long-name_and.more").find(">nobody<"), std::string::npos);
  options_.signed_by = [](const IndexRow& row) { return "TRUSTED: <" + row.version.text(); };
  Make();
  EXPECT_NE(Page("example/Tiny").find("TRUSTED: &lt;0.1.0"), std::string::npos);
  EXPECT_EQ(Page("example/Tiny").find("not checked"), std::string::npos);
}

TEST_F(SiteTest, KeepsThePagesOfModelsThatAreAsTheyWere) {
  EXPECT_EQ(Make().kept, 0u);
  const auto before = TreeBytes(site_);
  EXPECT_EQ(Make().kept, 3u);
  EXPECT_TRUE(TreeBytes(site_) == before);
  // A change to a page's sources changes that page and no other.
  AddSignature(zoo_, entries_[0], NewSigner(), nullptr);
  EXPECT_EQ(Make().kept, 2u);
  Yank(zoo_, entries_[1].name, entries_[1].version, "wrong", nullptr);
  EXPECT_EQ(Make().kept, 2u);
  EXPECT_NE(Page("example/Other").find("yanked: wrong"), std::string::npos);
  options_.title = "Another";
  EXPECT_EQ(Make().kept, 0u);
  options_.made_by = "another program";
  EXPECT_EQ(Make().kept, 0u);
  // If the list of pages is damaged, all pages are written again; if a page is missing, only that
  // one.
  WriteText(site_ / "pages.json", "{");
  EXPECT_EQ(Make().kept, 0u);
  fs::remove(site_ / "models/example/Tiny/index.html");
  EXPECT_EQ(Make().kept, 2u);
  const auto after = TreeBytes(site_);
  fs::remove_all(site_);
  Make();
  EXPECT_TRUE(TreeBytes(site_) == after);
}

// Checks pages at 360 and 1440 px, light and dark, with and without scripts: nothing overflows,
// contrast is at least 4.5, Tab reaches every control, and no page sends a request.
TEST_F(SiteTest, InABrowser) {
  AddSignature(zoo_, entries_[0], NewSigner(), nullptr);
  Yank(zoo_, entries_[1].name, entries_[1].version, "a wrong <template>", nullptr);
  options_.title = "A <b>zoo</b> with a title that is longer than a narrow screen is wide";
  Make();
  // Adds the other kinds of pages: a publisher's report, a comparison of two artifacts, and a
  // comparison of the reports of two models with different settings.
  fs::copy(scratch_ / "a/report.html", site_ / "report.html");
  Json other = SampleReport({.num_layers = 4, .max_length = 1024});
  other["validation"]["model"]["id"] = "example/other-model-with-a-long-name";
  other["validation"]["settings"]["seed"] = 7;
  WriteText(site_ / "comparison.html",
            ComparisonPage(CombineReports({{"a", SampleReport()}, {"b", other}})));
  WriteText(site_ / "diff.html", DiffPage(DiffArtifacts(scratch_ / "a", "a", scratch_ / "a", "b")));
  const auto look = [&] {
    return RunProgram(OSCAR_PYTHON, {OSCAR_SITE_SCRIPT, OSCAR_CHROMIUM_SCRIPT, site_.string()});
  };
  const ProgramExit whole = look();
  if (whole.code == 77) OSCAR_SKIP_WITHOUT_PACKAGE("chromium");
  EXPECT_TRUE(Exits(whole, 0));
  // Checks that the script finds defects.
  const fs::path index = site_ / "index.html";
  const std::string page = ReadText(index);
  for (const char* sound : {"models", "report.html", "diff.html", "comparison.html"})
    fs::remove_all(site_ / sound);
  const auto expect = [&](const std::string& from, const std::string& to,
                          const std::string& words) {
    std::string wrong = page;
    const size_t at = wrong.find(from);
    ASSERT_NE(at, wrong.npos) << from;
    WriteText(index, wrong.replace(at, from.size(), to));
    const ProgramExit ended = look();
    EXPECT_EQ(ended.code, 1) << words;
    EXPECT_NE(ended.out.find(words), std::string::npos) << ended.all();
  };
  expect("<footer>", "<footer style=\"width:1500px\">", "px of page");
  expect("<footer>", "<footer style=\"color:#999;background:#aaa\">", "contrast 1.");
  expect("<a class=\"name\"", "<a tabindex=\"-1\" class=\"name\"", "Tab reaches");
  expect("<footer>", "<footer><a href=\"#use\" style=\"outline:none\">x</a>", "no outline");
  expect("<footer>", "<footer><img src=\"other.png\" alt=\"x\">", "asked for");
}

}  // namespace
}  // namespace oscar
