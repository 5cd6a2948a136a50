// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Narrative and explaining prose: one set of sentence shapes over the word lists of six topics
// (prose_topics.cc). The main person and place stay the same through a document.
#include <array>

#include "capture/text/corpus/genres.h"
#include "capture/text/corpus/prose_topics.h"

namespace oscar {
namespace {

std::span<const Rule> SentenceRules() {
  static const std::vector<Rule> rules = {
      {"sentence",
       {"«^time», «who» went to «place» to «task».",
        "«^thing» was «state», and «who» «did» before anybody else arrived.",
        "Nobody doubted that «thing» would be «state» by evening, but «who» was not so sure.",
        "It was «hero» who «did» «when», long before the others had thought of it.",
        "“«^remark»,” said «who». “«^remark».”",
        "Although «who» «did», «thing» remained «state».",
        "If «thing» had been «state», «hero» would have had to «task»; as it was, there was time.",
        "There were «10-40» «things» in «place», of which «2-9» were «state».",
        "«^fact»",
        "«^fact» That is why «who» «did».",
        "“Is «thing» «state»?” asked «hero». “«^remark»,” came the answer from «place».",
        "From «place» one could see «place», where «who» «did» every «weekday».",
        "«^time» the weather was «weather», so «who» and «hero» «did» together.",
        "«^who» had learned to «task» from «who», who in turn had learned it at «place».",
        "The reason was simple: «thing» was «state», while «thing» was «state».",
        "To «task» takes patience; to «task» takes a good deal more.",
        "By «weekday» the «things» were counted, and the number, «50-900», was written on a card.",
        "«^hero» wrote in the notebook: “«fact»”",
        "Nothing of this would have happened if «who» had not «done» «when».",
        "Some said that «thing» was «state»; others, among them «who», held that it was «state».",
        "First «who» «did»; then, after a pause of «5-50» minutes, «who» «did» as well.",
        "What mattered at «place» was not «thing» but «thing»."}},
      {"time",
       {"early in the morning", "towards noon", "late in the afternoon", "on the following day",
        "a week later", "in the first days of «month»", "shortly after sunrise", "before the rain",
        "in the spring of that year", "when the lamps were lit", "once the crowd had gone"}},
      {"when",
       {"on «weekday»", "in «month»", "the night before", "at the last moment", "years ago",
        "without being asked", "for the third time", "in less than an hour"}},
      {"weekday", {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}},
      {"month", {"January", "March", "April", "June", "August", "October", "November"}},
      {"weather", {"mild", "stormy", "grey and still", "bitterly cold", "clear", "unusually warm"}},
      {"opening",
       {"This is an account of «home» and of the people who worked there, above all «hero».",
        "«^hero» came to «home» in «month», with one suitcase and no plan.",
        "Of all the places on the road, «home» was the one that «hero» remembered best.",
        "For «3-30» years «hero» had known «home», and still it could surprise."}},
      {"closing",
       {"When «hero» left «home» at last, «thing» was still «state».",
        "In the end it was «thing» that people remembered, and «hero» did not mind.",
        "And so, at «home», the work went on."}},
  };
  return rules;
}

std::string Paragraph(Grammar& grammar, SplitMix64& random) {
  std::string paragraph = grammar.Make("sentence");
  for (int64_t i = random.Between(3, 7); i > 0; --i) paragraph += " " + grammar.Make("sentence");
  return paragraph;
}

}  // namespace

std::string MakeProse(SplitMix64& random, size_t target_bytes, size_t variant) {
  return MakeProseAbout(ProseTopics()[variant % ProseTopics().size()], random, target_bytes);
}

std::string MakeEvaluationProse(SplitMix64& random, size_t target_bytes, size_t variant) {
  const std::span<const ProseTopic> topics = EvaluationTopics();
  return MakeProseAbout(topics[variant % topics.size()], random, target_bytes);
}

std::string MakeProseAbout(const ProseTopic& topic, SplitMix64& random, size_t target_bytes) {
  std::vector<Rule> rules(SentenceRules().begin(), SentenceRules().end());
  rules.insert(rules.end(), topic.rules.begin(), topic.rules.end());
  Grammar grammar(rules, random);
  grammar.Bind("hero", grammar.Make("name"));
  grammar.Bind("home", grammar.Make("place"));
  std::string text = "# " + std::string(topic.title) + "\n\n" + grammar.Make("opening") + " ";
  text += Fill(target_bytes, "\n\n", [&] { return Paragraph(grammar, random); });
  return text + "\n\n" + grammar.Make("closing") + "\n";
}

}  // namespace oscar
