// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/report_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "linalg/base/error.h"
#include "tests/export/report/sample_report.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

// Returns the message with which a report is refused, or nothing if it is accepted.
std::string Refusal(const Json& report) {
  return ErrorOf<InputError>([&] { CheckReport(report, "r.json"); });
}

std::string RefusalAfter(const std::function<void(Json&)>& change) {
  Json report = SampleReport();
  change(report);
  return Refusal(report);
}

void ExpectRefused(const std::string& message, const std::string& pointer,
                   const std::string& reason) {
  EXPECT_TRUE(Says(message, "r.json: " + pointer + ": "));
  EXPECT_TRUE(Says(message, reason));
}

TEST(ReportSchema, AcceptsWhatTheProgramsWrite) {
  EXPECT_EQ(Refusal(SampleReport()), "");
  EXPECT_EQ(Refusal(SampleReport(LargeSample())), "");
  EXPECT_EQ(Refusal(SampleReport({.validation = false})), "");
  EXPECT_EQ(Refusal(SampleReport({.validation = false, .held_out = false})), "");
  EXPECT_EQ(Refusal(SampleReport({.end_to_end = false, .gate_passes = false})), "");
  EXPECT_EQ(Refusal(SampleReport({.hostile = true})), "");
  EXPECT_EQ(Refusal(SampleReport({.every_member = true})), "");
}

// A member from a line of ReportMembers(). Indentation gives the depth.
struct Member {
  std::vector<std::string> path;  // "*": any name
  bool optional = false;
};
std::vector<Member> AllMembers() {
  std::istringstream lines(ReportMembers());
  std::vector<Member> members;
  std::vector<std::string> path;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(' ');
    path.resize(begin / 2, "*");
    std::istringstream names(line.substr(begin, line.find(':') - begin));
    for (std::string name; names >> name;) {
      if (name.back() == ',') name.pop_back();
      const bool optional = name.back() == '?';
      if (optional) name.pop_back();
      path.resize(begin / 2);
      path.push_back(name);
      members.push_back({path, optional});
    }
  }
  return members;
}

// Returns the first place of a member, in any element of a list.
std::optional<Json::json_pointer> PlaceOf(const Json& value, std::span<const std::string> path) {
  if (path.empty()) return Json::json_pointer();
  for (const auto& [key, child] : value.items()) {
    if (!value.is_array() && path[0] != "*" && path[0] != key) continue;
    if (const auto place = PlaceOf(child, value.is_array() ? path : path.subspan(1)))
      return Json::json_pointer("/" + key) / *place;
  }
  return std::nullopt;
}

TEST(ReportSchema, EveryMemberIsInTheSampleThatHasThemAll) {
  const Json sample = SampleReport({.every_member = true});
  for (const Member& member : AllMembers())
    EXPECT_TRUE(PlaceOf(sample, member.path)) << fmt::format("{}", fmt::join(member.path, "/"));
}

TEST(ReportSchema, ReadsVersionOneAndNoLaterOneThanItsOwn) {
  Json report = SampleReport({.validation = false});
  report["$schema"]["version"] = 1;
  EXPECT_EQ(Refusal(report), "");
  report["$schema"]["version"] = 5;
  ExpectRefused(Refusal(report), "/$schema/version", "versions 1 to 4, found 5");
  report = SampleReport();
  report["$schema"]["version"] = 1;
  ExpectRefused(Refusal(report), "/validation", "version 1 has no such member");
  EXPECT_NE(Refusal(Json::object()), "");
  EXPECT_NE(Refusal(Json::array()), "");
  EXPECT_NE(Refusal({{"$schema", "oscar-report"}}), "");
}

TEST(ReportSchema, NamesTheMemberThatIsMissing) {
  const Json sample = SampleReport({.num_layers = 2, .num_kv_heads = 1, .every_member = true});
  // Other members need these. Without them a report is refused, even where they are optional. The
  // same holds for the members of a loss ("ideal").
  const std::set<std::string> bound = {"spectrum", "spectrum_ranks", "clip_candidates", "value"};
  for (const auto& [path, optional] : AllMembers()) {
    const std::string &key = path.back(), holder = path.size() < 2 ? "" : path[path.size() - 2];
    if (holder.empty() && key == "$schema") continue;
    const auto place = PlaceOf(sample, path);
    ASSERT_TRUE(place) << key;
    Json report = sample;
    report.at(place->parent_pointer()).erase(key);
    const std::string message = Refusal(report);
    if (bound.contains(key) || holder == "ideal" || holder == "$schema" ||
        (holder == "checks" && key == "reason")) {
      EXPECT_NE(message, "") << *place;
    } else if (optional) {
      EXPECT_EQ(message, "") << *place;
    } else {
      EXPECT_TRUE(Says(message, "member \"" + key + "\" is missing")) << *place;
    }
  }
}

TEST(ReportSchema, RefusesMembersNobodyDefinedExceptWhereTheDocumentSaysSo) {
  ExpectRefused(RefusalAfter([](Json& r) { r["validation"]["arms"][2]["local"]["kll"] = 1; }),
                "/validation/arms/2/local", "unknown member \"kll\"; known: rows kl kl_all");
  ExpectRefused(RefusalAfter([](Json& r) { r["verdict"] = "fine"; }), "the document",
                "unknown member \"verdict\"");
  EXPECT_EQ(RefusalAfter([](Json& r) {
              r["model"]["colour"] = {{"deep", {1, "x", nullptr}}};
            }),
            "");
  EXPECT_EQ(RefusalAfter([](Json& r) { r["validation"]["settings"]["new"] = 1; }), "");
}

TEST(ReportSchema, RefusesWrongTypesAndNumbersThatAreNone) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto set = [](const char* pointer, const Json& value) {
    return RefusalAfter([&](Json& r) { r.at(Json::json_pointer(pointer)) = value; });
  };
  ExpectRefused(set("/validation/arms/1/local/kl/mean", kNan), "/validation/arms/1/local/kl/mean",
                "NaN or Inf");
  ExpectRefused(set("/validation/arms/1/local/heads/kl/3/1", "0.1"),
                "/validation/arms/1/local/heads/kl/3/1", "found the text \"0.1\"");
  ExpectRefused(set("/layers/2/sides/v/spectrum/7", nullptr), "/layers/2/sides/v/spectrum/7",
                "found null");
  ExpectRefused(set("/validation/arms/1/clip", 1), "/validation/arms/1/clip", "true or false");
  ExpectRefused(set("/validation/arms/1/text/top1_agreement", 1.01),
                "/validation/arms/1/text/top1_agreement", "from 0 to 1");
  ExpectRefused(set("/layers/0/tokens", -1), "/layers/0/tokens", "a count");
  ExpectRefused(set("/layers/0/tokens", 3.0), "/layers/0/tokens", "a count");
  ExpectRefused(set("/layers", Json::object()), "/layers", "an array");
  ExpectRefused(set("/model/config", {{"nested", {kNan}}}), "/model/config/nested/0", "NaN");
  ExpectRefused(set("/validation/source", "guess"), "/validation/source", "\"dump\"");
}

TEST(ReportSchema, RefusesAChoiceOfBitsThatNothingWasMeasuredAt) {
  ExpectRefused(RefusalAfter([](Json& r) { r["layers"][0]["auto"]["v_bits"] = 4; }),
                "/layers/0/auto/v_bits", "no element of \"v_options\" has 4 bits");
}

TEST(ReportSchema, RefusesMembersThatContradictEachOther) {
  ExpectRefused(RefusalAfter([](Json& r) {
                  r["validation"]["arms"][1]["local"]["kl"]["interval"] = {0.2, 0.1};
                }),
                "/validation/arms/1/local/kl/interval", "0.2 exceeds its upper end 0.1");
  ExpectRefused(RefusalAfter([](Json& r) { r["validation"]["headline_arm"] = "best"; }),
                "/validation/headline_arm", "no configuration is named \"best\"");
  ExpectRefused(RefusalAfter([](Json& r) { r["validation"]["gate"]["arm"] = "best"; }),
                "/validation/gate/arm", "no configuration is named");
  ExpectRefused(
      RefusalAfter([](Json& r) { r["validation"]["arms"][3] = r["validation"]["arms"][1]; }),
      "/validation/arms/3/name", "two configurations");
  ExpectRefused(RefusalAfter([](Json& r) {
                  r["validation"]["arms"][1]["local"]["heads"]["layer_ids"].push_back(9);
                }),
                "/validation/arms/1/local/heads", "\"layer_ids\" has 9 values and \"kl\" has 8");
  ExpectRefused(RefusalAfter([](Json& r) {
                  r["layers"][1]["sides"]["k"]["clip_error"] = {1, 2};
                }),
                "/layers/1/sides/k", "2 values of \"clip_error\" for 7");
  ExpectRefused(RefusalAfter([](Json& r) {
                  r["layers"][1]["sides"]["k"]["spectrum_ranks"] = {0, 1};
                }),
                "/layers/1/sides/k", "\"spectrum\" has 64 values");
}

// A publisher might edit the verdict but not the numbers, or the numbers but not the verdict.
TEST(ReportSchema, AGateSaysWhatItsChecksSayAndTheyWhatTheirNumbersSay) {
  const auto gate = [](const std::function<void(Json&)>& change) {
    Json report = SampleReport({.gate_passes = false});
    change(report["validation"]["gate"]);
    return Refusal(report);
  };
  EXPECT_EQ(gate([](Json&) {}), "");
  ExpectRefused(gate([](Json& g) { g["passed"] = true; }), "/validation/gate/passed",
                "is true, but its checks give false");
  ExpectRefused(gate([](Json& g) { g["checks"][0]["passed"] = true; }),
                "/validation/gate/checks/0/passed", "is true");
  ExpectRefused(gate([](Json& g) { g["checks"][0]["op"] = "=="; }), "/validation/gate/checks/0/op",
                "found \"==\"");
  ExpectRefused(gate([](Json& g) { g["checks"] = Json::array(); }), "/validation/gate/checks",
                "has no checks");
  const auto unmeasured = [](Json& g) {
    g["checks"][0].erase("value");
    g["checks"][0]["reason"] = "not measured";
  };
  EXPECT_EQ(gate(unmeasured), "");
  ExpectRefused(gate([&](Json& g) {
                  unmeasured(g);
                  g["checks"][0]["passed"] = true;
                }),
                "/validation/gate/checks/0/passed", "is true");
}

TEST(ReportSchema, ALossIsTheDifferenceOfTheArmsThatItNames) {
  constexpr size_t kRuntime = 10;
  const auto ideal = [](const std::function<void(Json&)>& change) {
    Json report = SampleReport();
    change(report["validation"]["arms"][kRuntime]["ideal"]);
    return Refusal(report);
  };
  const std::string place = "/validation/arms/10/ideal";
  EXPECT_EQ(ideal([](Json&) {}), "");
  ExpectRefused(ideal([](Json& i) { i["kl"] = 0.0; }), place, "the configurations give");
  ExpectRefused(ideal([](Json& i) { i.erase("perplexity"); }), place, "the configurations give");
  ExpectRefused(ideal([](Json& i) { i.erase("kl"); }), place, "kl");
  ExpectRefused(ideal([](Json& i) { i["arm"] = "another"; }), place + "/arm",
                "no other configuration");
  ExpectRefused(ideal([](Json& i) { i["arm"] = "runtime_sglang"; }), place + "/arm",
                "no other configuration");
  Json report = SampleReport();
  report["validation"]["arms"][4]["text"]["perplexity"] = 2.5;  // the arm that "ideal" names
  ExpectRefused(Refusal(report), place, "the configurations give");
}

// The totals of the kernels must be those of their heads, and the verdict must follow from them.
TEST(ReportSchema, KernelsSayWhatTheirHeadsSay) {
  const auto kernels = [](bool pass, const std::function<void(Json&)>& change) {
    Json report = SampleReport({.kernels_pass = pass});
    change(report["validation"]["kernels"]);
    return Refusal(report);
  };
  EXPECT_EQ(kernels(true, [](Json&) {}), "");
  EXPECT_EQ(kernels(false, [](Json&) {}), "");
  ExpectRefused(kernels(false, [](Json& k) { k["passed"] = true; }), "/validation/kernels/passed",
                "is true, but 70 values differ");
  const auto says_none = [](Json& k) { k.update({{"passed", true}, {"differing_codes", 0}}); };
  ExpectRefused(kernels(false, says_none), "/validation/kernels/differing_codes",
                "is 0, but the heads add up to 35");
  const auto beyond_64_bits = [](Json& k) {
    Json head = k["layers"][0]["heads"][0];
    head.update({{"codes", 0}, {"differing_codes", int64_t{1} << 53}});
    for (int i = 0; i < 2048; ++i) k["layers"][0]["heads"].push_back(head);
  };
  ExpectRefused(kernels(true, beyond_64_bits), "/validation/kernels/differing_codes", "is 0");
  ExpectRefused(kernels(true, [](Json& k) { k["layers"][2]["heads"][1]["kernel_error"] = 0.0101; }),
                "/validation/kernels/passed", "largest kernel error is 0.0101");
  ExpectRefused(kernels(true, [](Json& k) { k["codes"] = 1; }), "/validation/kernels/codes",
                "is 1");
  ExpectRefused(kernels(true, [](Json& k) { k["rotations"] = "none"; }),
                "/validation/kernels/rotations", "\"shared\"");
}

// schema.md must contain the list of members that the code defines. If OSCAR_WRITE_SCHEMA is set,
// the test writes the list instead.
TEST(ReportSchema, TheDocumentHasTheListOfMembers) {
  const std::string begin = "<!-- members: begin -->\n```\n", end = "```\n<!-- members: end -->\n";
  std::ifstream file(OSCAR_REPORT_SCHEMA);
  std::string document{std::istreambuf_iterator<char>(file), {}};
  const size_t from = document.find(begin) + begin.size(), to = document.find(end);
  ASSERT_LT(from, to);
  ASSERT_NE(to, std::string::npos);
  if (std::getenv("OSCAR_WRITE_SCHEMA") != nullptr)
    std::ofstream(OSCAR_REPORT_SCHEMA) << document.replace(from, to - from, ReportMembers());
  else
    EXPECT_EQ(document.substr(from, to - from), ReportMembers());
}

// Collects every key of the sample, except those inside open objects.
void CollectKeys(const Json& value, std::set<std::string>& keys) {
  static const std::set<std::string> kFree = {"model",   "data",      "calibration", "program",
                                              "machine", "rotations", "settings"};
  if (value.is_array()) {
    for (const Json& element : value) CollectKeys(element, keys);
  }
  if (!value.is_object()) return;
  for (const auto& [key, member] : value.items()) {
    if (key != "naive" && !key.starts_with("hadamard") && !key.starts_with("oscar_"))
      keys.insert(key);
    if (!kFree.contains(key)) CollectKeys(member, keys);
  }
}

// The text before the list must explain every member.
TEST(ReportSchema, TheDocumentNamesEveryMember) {
  std::ifstream file(OSCAR_REPORT_SCHEMA);
  std::string document{std::istreambuf_iterator<char>(file), {}};
  document = document.substr(0, document.find("## All members"));
  ASSERT_FALSE(document.empty());
  std::set<std::string> keys;
  CollectKeys(SampleReport(), keys);
  EXPECT_GT(keys.size(), 100u);
  for (const std::string& key : keys) {
    EXPECT_NE(document.find('`' + key + '`'), std::string::npos) << key << " is not in schema.md";
  }
}

}  // namespace
}  // namespace oscar
