// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares chat templates with Jinja2 3.1.6 in transformers' environment. tests/data/chat_templates
// holds a few cases of each family of the pack. Its constructs.jsonl has small templates over the
// variables in its first line; each row gives Jinja2's output, that Jinja2 failed, or that we
// refuse what it accepts.
#include "capture/text/template/chat_template.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "capture/text/template/json_value.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

using jinja::CivilTime;
using jinja::Value;

std::vector<Value> ReadValues(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  std::vector<Value> rows;
  for (std::string line; std::getline(in, line);)
    rows.push_back(jinja::ParseJsonValue(line, file.string()));
  return rows;
}

const Value& Member(const Value& row, const char* key) { return *row.dict().Find(key); }

void Append(const Value& dict, ChatTemplate::Variables& variables) {
  for (const auto& [key, value] : dict.dict().items) variables.emplace_back(key.as_string(), value);
}

CivilTime ParseNow(const Value& row) {
  CivilTime now;
  EXPECT_EQ(std::sscanf(Member(row, "now").as_string().c_str(), "%d-%d-%dT%d:%d:%d", &now.year,
                        &now.month, &now.day, &now.hour, &now.minute, &now.second),
            6);
  return now;
}

// Returns the rendered text, or "error: " and the message.
std::string Render(const std::string& source, const ChatTemplate::Variables& variables,
                   const CivilTime& now = {}, uint64_t max_steps = 1'000'000) {
  try {
    return ChatTemplate(source, "t.jinja").Render(variables, now, max_steps).text;
  } catch (const InputError& error) {
    return std::string("error: ") + error.what();
  }
}

int CheckFamily(const std::filesystem::path& folder) {
  const std::string source = ReadText(folder / "template.jinja");
  const std::vector<Value> rows = ReadValues(folder / "cases.jsonl");
  for (const Value& row : rows) {
    ChatTemplate::Variables variables;
    for (const char* name : {"messages", "tools", "documents", "add_generation_prompt"})
      variables.emplace_back(name, Member(row, name));
    Append(Member(row, "kwargs"), variables);
    Append(Member(row, "special_tokens"), variables);
    const std::string found = Render(source, variables, ParseNow(row));
    const std::string what = folder.filename().string() + ": " + Member(row, "name").as_string();
    if (const Value* output = row.dict().Find("output")) {
      EXPECT_EQ(found, output->as_string()) << what;
      continue;
    }
    EXPECT_TRUE(found.starts_with("error: t.jinja:")) << what << ": " << found;
    if (Member(row, "error_kind").as_string() == "raise_exception") {
      EXPECT_TRUE(found.ends_with(": " + Member(row, "error").as_string()))
          << what << ": " << found;
    }
  }
  return static_cast<int>(rows.size());
}

int CheckFamilies(const std::filesystem::path& folder) {
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) cases += CheckFamily(entry.path());
  }
  return cases;
}

TEST(ChatTemplate, BundledFamiliesAreEqual) {
  EXPECT_GE(CheckFamilies(TestData("chat_templates")), 30);
}

TEST(ChatTemplate, PackIsEqual) {
  OSCAR_PACK_OR_SKIP(path, "chat_templates");
  const int cases = CheckFamilies(path);
  EXPECT_GT(cases, 0);
  fmt::print("{} template cases compared\n", cases);
}

TEST(ChatTemplate, ConstructsAreEqual) {
  const std::vector<Value> rows = ReadValues(TestData("chat_templates") / "constructs.jsonl");
  ASSERT_GT(rows.size(), 400u);
  ChatTemplate::Variables variables;
  Append(Member(rows[0], "variables"), variables);
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::string& source = Member(rows[i], "template").as_string();
    const std::string found = Render(source, variables, ParseNow(rows[0]));
    if (const Value* output = rows[i].dict().Find("output")) {
      EXPECT_EQ(found, output->as_string()) << "line " << i + 1 << ": " << source;
    } else if (const Value* refused = rows[i].dict().Find("refused")) {
      EXPECT_TRUE(found.starts_with("error: t.jinja:")) << "line " << i + 1 << ": " << found;
      const std::string& what = refused->as_string();
      EXPECT_TRUE(found.ends_with(
          what.find(" supported") != what.npos
              ? what
              : fmt::format("the {} is not supported, because no known chat template uses it",
                            what)))
          << "line " << i + 1 << ": " << source << "\n"
          << found;
    } else {
      EXPECT_TRUE(found.starts_with("error: ")) << "line " << i + 1 << ": " << source << "\n"
                                                << found;
    }
  }
}

TEST(ChatTemplate, ErrorsNameTheLine) {
  EXPECT_EQ(Render("a\n{% if x %}\n{{ y.z }}{% endif %}", {{"x", Value::Bool(true)}}),
            "error: t.jinja:3: 'y' is undefined");
  EXPECT_EQ(Render("{% macro m(a) %}\n{{ a + 1 }}\n{% endmacro %}\n{{ m('x') }}", {}),
            "error: t.jinja:2: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(Render("\n\n{{ raise_exception('No ' ~ 1) }}", {}), "error: t.jinja:3: No 1");
  EXPECT_EQ(Render("a\n{% for x in y %}\nb", {}),
            "error: t.jinja: line 3: the template ends here, but a block is open that needs "
            "\"endfor\"");
  EXPECT_EQ(Render("{% include 'secrets.txt' %}", {}),
            "error: t.jinja: line 1: the tag 'include' is not supported, because no known chat "
            "template uses it");
  EXPECT_EQ(Render("a\n\n{{ [[1]\n|batch(2)] }}", {}),
            "error: t.jinja:4: the filter 'batch' is not supported, because no known chat template "
            "uses it");
  EXPECT_EQ(Render("{{ x|frobnicate }}", {}), "error: t.jinja:1: No filter named 'frobnicate'.");
  EXPECT_EQ(Render("{{ 'a", {}), "error: t.jinja: line 1: this string is not closed");
}

TEST(ChatTemplate, TimeIsReported) {
  const auto render = [](const char* source) {
    return ChatTemplate(source, "t").Render({}, {.year = 2024, .month = 2, .day = 29});
  };
  EXPECT_EQ(render("{{ strftime_now('%A %d %b %Y %H:%M') }}").text, "Thursday 29 Feb 2024 00:00");
  EXPECT_TRUE(render("{{ strftime_now('%Y') }}").reads_time);
  EXPECT_FALSE(render("{{ 'x' or strftime_now('%Y') }}").reads_time);
}

TEST(ChatTemplate, HostileTemplatesEndInErrors) {
  const auto nested = [](const std::string& open, const std::string& inner,
                         const std::string& close, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += open;
    out += inner;
    for (int i = 0; i < times; ++i) out += close;
    return out;
  };
  const std::string forever = "{% for a in range(99999) %}";
  const std::pair<std::string, std::string> cases[] = {
      {nested(forever, "x", "{% endfor %}", 3), "steps"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested deeper"},
      {"{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor "
       "%}",
       "steps"},
      {"{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}",
       "nested deeper"},
      {"{% set n = namespace(x=[1]) %}{% for i in range(90) %}{% set n.x = [n.x, n.x] %}{% endfor "
       "%}"
       "{{ n.x }}",
       "steps"},
      {"{% set n = namespace(x=[1]) %}{% for i in range(90) %}{% set n.x = [n.x, n.x] %}{% endfor "
       "%}"
       "{{ n.x == n.x + [] }}{{ n.x|tojson }}",
       "steps"},
      {"{% set n = namespace(x=[1]) %}{% for i in range(999) %}{% set n.x = n.x|map('upper') %}"
       "{% endfor %}{{ n.x|list }}",
       "nested deeper"},
      {"{% set n = namespace() %}{% set n.x = [n] %}{{ n.x }}", "conversion to text of the type"},
      {"{% set n = namespace() %}{% for x in [1, 0, 2] if x %}{% set n.x = loop %}{% break %}"
       "{% endfor %}{{ n.x.last }}{{ n.x.nextitem }}{{ n.x.nextitem.y.z }}",
       "no attribute 'y'"},
      {"{% set n = namespace() %}{% set n.x = n %}{{ n.x.x.x is defined }}", ""},
      {"{{ 'x' * 999999999999 }}", "of more than"},
      {"{{ [0] * 999999999999 }}", "steps"},
      {"{{ ('x' * 30000000).replace('', 'xxxxx') }}", "steps"},
      {"{{ strftime_now('a' * 999999) }}", "at most"},
      {"{{ strftime_now('\u00e9\\x00%d') }}", "null character"},
      {"{{ strftime_now('%-10z') }}", "%-10z"},
      {"{{ strftime_now('%%%EZ') }}", "%EZ"},
      {"{{ strftime_now('%s') }}", "%s"},
      {"{{ '{:999999999}'.format(1) }}", "format"},
      {"{{ range(999999999)|list }}", "Range too big"},
      {"{{ 9223372036854775807 + 1 }}", "64 bits"},
      {"{{ 3 * 9223372036854775807 }}", "64 bits"},
      {"{{ " + nested("(", "1", ")", 100000) + " }}", "nested deeper"},
      {"{{ " + nested("[", "1", "]", 100000) + " }}", "nested deeper"},
      {"{{ " + nested("-", "1", "", 100000) + " }}", "nested deeper"},
      {"{{ " + nested("not ", "1", "", 100000) + " }}", "nested deeper"},
      {"{{ 1" + nested(" + 1", "", "", 100000) + " }}", "in a row"},
      {"{{ a" + nested(".b", "", "", 100000) + " }}", "in a row"},
      {"{{ a" + nested("|upper", "", "", 100000) + " }}", "in a row"},
      {nested("{% if 1 %}", "x", "{% endif %}", 40000), "nested deeper"},
      {"{% macro m(x) %}{% for y in x %}{{ m([x]) }}{% endfor %}{% endmacro %}{{ m([1]) }}",
       "nested deeper"},
      {"{{ s.__init__.__globals__ }}", "undefined"},
      {"{{ ''.__init__.__globals__ }}", "unsafe"},
      {"{{ [].append(1) }}", "unsafe"},
  };
  for (const auto& [source, message] : cases) {
    const std::string found = Render(source, {});
    EXPECT_EQ(found.starts_with("error: "), !message.empty()) << source.substr(0, 200) << found;
    EXPECT_TRUE(Says(found, message)) << source.substr(0, 200) << "\n" << found.substr(0, 300);
  }
}

// Sizes are checked before anything is allocated: no case takes a tenth of a second or 200 MB.
TEST(ChatTemplate, TextsAndListsAreBounded) {
  const std::pair<std::string, std::string> cases[] = {
      {"{{ [0] * 999999999999 }}", "of more than"},
      {"{{ ('x' * 30000000).replace('', 'xxxxx') }}", "of more than"},
      {"{{ '\\n' * 30000000 }}{{ ('\\n' * 30000000).splitlines()|length }}", "of more than"},
      {"{{ ('a ' * 15000000).split()|length }}", "of more than"},
      {"{{ ('\x01' * 30000000)|tojson|length }}", "of more than"},
      {"{{ ('&' * 30000000)|escape|length }}", "of more than"},
      {"{{ ('x' * 30000000)|upper|length }}", "of more than"},
      {"{{ ('x' * 30000000)[::2]|length }}", "of more than"},
      {"{{ ('x' * 30000000).find('x' * 9999999 ~ 'y') }}", "steps"},
      {"{{ ('x' * 30000000).strip('a' * 999999 ~ 'x') }}", "steps"},
      {"{{ [('x' * 30000000)] * 9999 == [('x' * 30000000)] * 9999 }}", "steps"},
      {"{{ (range(99999)|list * 99)|length }}", "of more than"},
  };
  for (const auto& [source, message] : cases) {
    const std::string found = Render(source, {}, {}, jinja::Session::kMaxSteps);
    EXPECT_TRUE(Says(found, message)) << source << "\n" << found.substr(0, 300);
  }
}

// Behaves like Jinja2 3.1.6: floats out of range are infinite, integers do not begin with 0,
// `reverse` is an integer, and a "{#" at the end of a template does not start a comment.
TEST(ChatTemplate, NumbersFlagsAndCommentsAsPython) {
  EXPECT_EQ(Render("{{ 1e400 }} {{ 1e-400 }} {{ 00 }} {{ 09.5 }}", {}), "inf 0.0 0 9.5");
  EXPECT_TRUE(Says(Render("{{ 099 }}", {}), "begins with 0"));
  EXPECT_EQ(Render("{{ [2, 1]|sort(reverse=1) }}", {}), "[2, 1]");
  EXPECT_TRUE(Says(Render("{{ [2, 1]|sort(reverse=undefined) }}", {}), "is undefined"));
  EXPECT_TRUE(Says(Render("{{ [2, 1]|sort(reverse=none) }}", {}), "as an integer"));
  EXPECT_EQ(Render("x{#", {}), "x");
  EXPECT_EQ(Render("x{#-", {}), "x");
  EXPECT_TRUE(Render("x{# ", {}).starts_with("error"));
}

}  // namespace
}  // namespace oscar
