// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Chat templates. Byte changes seldom make one that parses, so this inserts expressions and
// statements of Jinja's grammar, with all filters, tests and methods.

#include <algorithm>

#include "capture/text/template/chat_template.h"
#include "capture/text/template/json_value.h"
#include "tests/fuzz/harness/harnesses.h"

namespace oscar::fuzz {
namespace {

constexpr std::string_view kVariables =
    R"({"messages":[{"role":"user","content":"hi \u00e9"}],"x":[1,2.5,null]})";

// Input: a template, NUL, the variables as JSON. Checks that an accepted template renders the same
// valid text twice.
void RunJinja(std::string_view input) {
  const size_t cut = std::min(input.find('\0'), input.size());
  ChatTemplate::Variables variables;
  const jinja::Value given =
      jinja::ParseJsonValue(cut < input.size() ? input.substr(cut + 1) : kVariables, "variables");
  if (given.is_dict()) {
    for (const auto& [key, value] : given.dict().items)
      variables.emplace_back(key.as_string(), value);
  }
  const ChatTemplate chat(input.substr(0, cut), "template");
  const auto first = chat.Render(variables, {}, 300'000);
  CheckUtf8(first.text);
  FUZZ_CHECK(chat.Render(variables, {}, 300'000).text == first.text);
}

std::vector<std::string> JinjaSeeds() {
  std::vector<std::string> seeds = SeedFiles("chat_templates", ".jinja", 4096);
  for (const char* source :
       {"{% for m in messages %}{{ loop.index0 }}{{ m.role|upper ~ m['content'][::-1] }}{% endfor "
        "%}",
        "{%- macro f(a, b=2) -%}{{ a|trim }}{{ b // 2 }}{%- endmacro -%}{{ f(' x ', b=3.5) }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(5) if i is odd %}{% set ns.x = ns.x + [i] "
        "%}"
        "{% endfor %}{{ ns.x|tojson(indent=2) }}{{ x|sort|reverse|list }}",
        "{{ 'a,b c'.split(',')|join('-')|replace('b', '&')|escape }}{{ '%s'|length }}",
        "{{ messages[0].content[1] }}{{ strftime_now('%d %b %Y') }}{# note #}{{ "
        "messages|selectattr('role', 'equalto', 'user')"
        "|map(attribute='content')|first|title }}{{ {'b': 1, 'a': [true, none]}|dictsort }}",
        "{% if x is defined and 1 in x %}{{ x[0] * 3 - 2 % 7 }}{% elif y %}{% else %}n{% endif %}"
        "{{ 'q' in 'quit' }}{{ x|default('z', true)|string|indent(2, first=true) }}"}) {
    seeds.emplace_back(source);
  }
  if (!kCampaign) return Accepted(seeds, RunJinja);
  // Adds every construct that the interpreter is tested with, and the variables that it names.
  const std::vector<Json> constructs = SeedRows("chat_templates/constructs.jsonl");
  for (const Json& row : constructs) {
    if (!row.contains("template")) continue;
    const auto source = row.at("template").get<std::string>();
    Json named = Json::object();
    for (const auto& [name, value] : constructs.front().at("variables").items())
      if (source.find(name) != source.npos) named[name] = value;
    seeds.push_back(source + '\0' + named.dump());
  }
  return Accepted(seeds, RunJinja);  // some need other variables or raise an error
}

template <size_t kCount>
std::string OneOf(const std::string_view (&choices)[kCount], Random& random) {
  return std::string(choices[random() % kCount]);
}

std::string Expression(Random& random, int depth);

// Returns zero to two arguments, some by name.
std::string Arguments(Random& random, int depth) {
  static constexpr std::string_view kNames[] = {
      "attribute", "reverse", "case_sensitive", "indent", "default", "boolean", "width",
      "first",     "by",      "sort_keys",      "d",      "count",   "sep",     "maxsplit"};
  std::string out = "(";
  for (size_t left = random() % 3; left > 0; --left) {
    if (random() % 4 == 0) out += OneOf(kNames, random) + "=";
    out += Expression(random, depth) + (left > 1 ? ", " : "");
  }
  return out + ")";
}

std::string Atom(Random& random) {
  static constexpr std::string_view kAtoms[] = {"messages",
                                                "x",
                                                "y",
                                                "m",
                                                "m.role",
                                                "m['content']",
                                                "loop.index",
                                                "loop.last",
                                                "loop.previtem",
                                                "loop.cycle(1, 'b')",
                                                "loop.changed(m)",
                                                "ns.a",
                                                "caller()",
                                                "f(1, b=2)",
                                                "f",
                                                "varargs",
                                                "kwargs",
                                                "''",
                                                "'a b'",
                                                "\"\\u00e9\\n\"",
                                                "'<&>'",
                                                "'Ab1 aB'",
                                                "'\u00df\u01c5\u0130'",
                                                "'{0!r:>5}{k}'",
                                                "'role'",
                                                "'odd'",
                                                "'upper'",
                                                "'%d %B %Y %H:%M %j'",
                                                "'%a%A%w%b%m%y%I%p%S%f%z%Z%U%W%c%x%X%%%-d%e%q'",
                                                "'0x1F'",
                                                "' -42 '",
                                                "16",
                                                "'\u0391\u03a3 \u03a3b'",
                                                "[x, x]",
                                                "{'a': 1, 'b': 2}.items()",
                                                "0",
                                                "1",
                                                "-1",
                                                "7",
                                                "1_000",
                                                "99999999999999999999",
                                                "2.5",
                                                "1e3",
                                                "1e400",
                                                "099",
                                                "0x1F",
                                                "none",
                                                "true",
                                                "False",
                                                "[]",
                                                "{}",
                                                "[1, 'b', none]",
                                                "(1, 2)",
                                                "{'b': 1, 'a': [x]}",
                                                "range(5)",
                                                "range(9, 0, -2)",
                                                "namespace(a=1)",
                                                "dict(a=x)"};
  return OneOf(kAtoms, random);
}

std::string Expression(Random& random, int depth) {
  static constexpr std::string_view kFilters[] = {
      "capitalize", "count",  "d",          "default", "dictsort",   "e",       "escape",
      "first",      "indent", "int",        "items",   "join",       "last",    "length",
      "list",       "lower",  "map",        "reject",  "rejectattr", "replace", "reverse",
      "safe",       "select", "selectattr", "sort",    "string",     "title",   "tojson",
      "trim",       "unique", "upper",      "abs",     "batch",      "sum",     "min",
      "max",        "float",  "groupby",    "round",   "slice"};
  static constexpr std::string_view kTests[] = {
      "defined",  "undefined", "none",     "boolean", "true",        "false",
      "integer",  "float",     "number",   "string",  "mapping",     "iterable",
      "sequence", "callable",  "odd",      "even",    "divisibleby", "sameas",
      "in",       "eq",        "equalto",  "ne",      "gt",          "greaterthan",
      "ge",       "lt",        "lessthan", "le",      "lower",       "upper"};
  static constexpr std::string_view kMethods[] = {
      "capitalize", "count",  "endswith", "find",         "format",       "index",   "isdigit",
      "join",       "lower",  "lstrip",   "removeprefix", "removesuffix", "replace", "rfind",
      "rsplit",     "rstrip", "split",    "splitlines",   "startswith",   "strip",   "title",
      "upper",      "copy",   "get",      "items",        "keys",         "values",  "append",
      "pop",        "update", "role",     "content"};
  static constexpr std::string_view kOperators[] = {"+",  "-",  "*",  "/",      "//",  "%",
                                                    "**", "~",  "==", "!=",     "<",   "<=",
                                                    ">",  ">=", "in", "not in", "and", "or"};
  if (depth <= 0) return Atom(random);
  const auto inner = [&] { return Expression(random, depth - 1 - static_cast<int>(random() % 2)); };
  switch (random() % 14) {
    case 0:
    case 1:
      return inner() + "|" + OneOf(kFilters, random);
    case 2:
    case 3:
      return inner() + "|" + OneOf(kFilters, random) + Arguments(random, depth - 2);
    case 4:
      return inner() + (random() % 3 == 0 ? " is not " : " is ") + OneOf(kTests, random) +
             (random() % 2 == 0 ? "" : Arguments(random, depth - 2));
    case 5:
    case 6:
      return inner() + "." + OneOf(kMethods, random) + Arguments(random, depth - 2);
    case 7:
    case 8:
      return inner() + " " + OneOf(kOperators, random) + " " + inner();
    case 9:
      return (random() % 2 == 0 ? "not " : "-") + inner();
    case 10:
      return inner() + " if " + inner() + (random() % 3 == 0 ? "" : " else " + inner());
    case 11:
      return inner() + "[" + inner() + "]";
    case 12: {
      const auto bound = [&] { return random() % 2 == 0 ? std::string() : Atom(random); };
      return inner() + "[" + bound() + ":" + bound() + (random() % 2 == 0 ? "" : ":" + bound()) +
             "]";
    }
    default:
      switch (random() % 3) {
        case 0:
          return "[" + inner() + ", " + inner() + "]";
        case 1:
          return "{" + Atom(random) + ": " + inner() + "}";
        default:
          return "(" + inner() + ")";
      }
  }
}

std::string Statement(Random& random, int depth) {
  const auto value = [&] { return Expression(random, 1 + static_cast<int>(random() % 3)); };
  const auto body = [&] {
    return depth > 0 && random() % 2 == 0 ? Statement(random, depth - 1) : "{{ " + value() + " }}";
  };
  const std::string open = random() % 4 == 0 ? "{%- " : "{% ",
                    close = random() % 4 == 0 ? " -%}" : " %}";
  const auto tag = [&](const std::string& inside) { return open + inside + close; };
  switch (random() % 14) {
    case 0:
      return tag("for m in " + value() + (random() % 3 == 0 ? " if " + value() : "")) + body() +
             (random() % 4 == 0 ? tag("else") + body() : "") + tag("endfor");
    case 1:
      return tag("for a, b in " + value()) + body() + "{{ a }}" + tag("endfor");
    case 2:
      return tag("for m in " + value()) + tag("if " + value()) +
             tag(random() % 2 == 0 ? "break" : "continue") + tag("endif") + body() + tag("endfor");
    case 3:
      return tag("if " + value()) + body() +
             (random() % 2 == 0 ? tag("elif " + value()) + body() : "") +
             (random() % 2 == 0 ? tag("else") + body() : "") + tag("endif");
    case 4:
      return tag("set x = " + value());
    case 5:
      return tag("set x" + std::string(random() % 2 == 0 ? "" : "|upper")) + body() + tag("endset");
    case 6:
      return tag("set ns = namespace(a=" + value() + ")") + tag("set ns.a = " + value());
    case 7:
      return tag("set x, y = " + value());
    case 8:
      return tag("macro f(a, b=" + value() + ")") + body() + tag("endmacro") + "{{ f" +
             Arguments(random, 1) + " }}";
    case 9:
      return tag("call" + std::string(random() % 2 == 0 ? "" : "(m)") + " f(1)") + body() +
             tag("endcall");
    case 10:
      return tag("generation") + body() + tag("endgeneration");
    case 11:
      return tag("raw") + "{{ x %}" + tag("endraw");
    case 12:
      return "{# " + value() + " #}";
    default:
      return (random() % 4 == 0 ? "{{- " : "{{ ") + value() + (random() % 4 == 0 ? " -}}" : " }}");
  }
}

// Returns the positions where tags begin, and both ends.
std::vector<size_t> TagBegins(const std::string& source) {
  std::vector<size_t> begins = {0, source.size()};
  for (size_t at = 0; (at = source.find('{', at)) != source.npos; at += 2)
    if (at + 1 < source.size() &&
        std::string_view("{%#").find(source[at + 1]) != std::string_view::npos)
      begins.push_back(at);
  std::ranges::sort(begins);
  return begins;
}

std::string MutateTemplate(const std::string& input, Random& random) {
  const size_t cut = std::min(input.find('\0'), input.size());
  std::string out = input.substr(0, cut), variables = input.substr(cut);
  if (random() % 5 == 0) {
    const std::string json = variables.empty() ? std::string(kVariables) : variables.substr(1);
    return out + '\0' + MutateJson(json, random);
  }
  for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
    const std::vector<size_t> begins = TagBegins(out);
    const size_t which = random() % begins.size();
    // Only character boundaries are used: text that is not UTF-8 is refused at once.
    size_t anywhere = random() % (out.size() + 1);
    while (anywhere < out.size() && (out[anywhere] & 0xC0) == 0x80) ++anywhere;
    switch (random() % 6) {
      case 0:
        out.insert(begins[which], Statement(random, 2));
        break;
      case 1:  // replace a tag
        if (which + 1 < begins.size()) {
          out.replace(begins[which], begins[which + 1] - begins[which], Statement(random, 1));
        }
        break;
      case 2: {  // extend an expression
        const size_t end = out.find("}}", begins[which]);
        if (end != out.npos) {
          static constexpr std::string_view kJoints[] = {"|",   ".",    " is ", " ~ ",
                                                         " + ", " if ", ", "};
          out.insert(end, OneOf(kJoints, random) + Expression(random, 1) + " ");
        }
        break;
      }
      case 3:
        out.insert(anywhere, Expression(random, static_cast<int>(random() % 3)));
        break;
      case 4: {
        static constexpr std::string_view kWords[] = {"{{ ",      " }}",
                                                      "{% ",      " %}",
                                                      "{#",       "#}",
                                                      "endfor",   "endif",
                                                      "endmacro", "recursive",
                                                      "(",        ")",
                                                      "[",        "]",
                                                      "'",        "\n",
                                                      "-",        "//0",
                                                      " * 99",    "raise_exception('x')",
                                                      ",",        "strftime_now('%c')",
                                                      "\\",       "=",
                                                      "*x",       "**x"};
        out.insert(anywhere, OneOf(kWords, random));
        break;
      }
      default:
        out.erase(anywhere, random() % 12);
    }
  }
  return out + variables;
}

// Inserts some tags of another template.
std::string SpliceTemplate(const std::string& input, const std::string& other, Random& random) {
  const std::string from = other.substr(0, other.find('\0'));
  const std::vector<size_t> taken = TagBegins(from);
  const size_t first = random() % (taken.size() - 1);
  const size_t last = std::min(taken.size() - 1, first + 1 + random() % 4);
  const std::vector<size_t> begins = TagBegins(input.substr(0, input.find('\0')));
  std::string out = input;
  out.insert(begins[random() % begins.size()], from, taken[first], taken[last] - taken[first]);
  return out;
}

}  // namespace

const Harness kJinja = {"jinja", RunJinja, JinjaSeeds, MutateTemplate, 4096, 1, SpliceTemplate};

}  // namespace oscar::fuzz
