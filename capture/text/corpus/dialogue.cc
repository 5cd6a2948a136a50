// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversations: a support chat, an interview, and questions with worked answers.
#include "capture/text/corpus/genres.h"

namespace oscar {
namespace {

std::span<const Rule> Rules() {
  static const std::vector<Rule> rules = {
      {"customer", {"Priya", "Daniel", "Yusuf", "Charlotte", "Mateo"}},
      {"agent", {"Robin", "Alex", "Sam", "Jordan"}},
      {"device", {"router", "printer", "thermostat", "laptop", "camera", "dishwasher"}},
      {"fault",
       {"restarts every «5-50» minutes", "shows error E«10-99»", "does not connect any more",
        "makes a clicking noise", "lost its settings after the update", "is very slow today"}},
      {"step",
       {"hold the reset button for «5-30» seconds", "unplug the cable and wait a minute",
        "open the settings and choose “Network”", "install version «1-9».«0-20».«0-9»",
        "send me the serial number on the back", "check whether the light is green or amber",
        "try a different cable", "turn off the energy saving mode"}},
      {"result",
       {"that helped for a moment, then it came back", "no change, sorry", "now it says “ready”",
        "the light turned green", "I get the same message again", "it asks for a password",
        "it worked on the second try"}},
      {"support",
       {"«customer»: Hello, my «thing» «fault».\n«agent»: Thank you for writing. Please «step».\n"
        "«customer»: Done: «result».\n",
        "«agent»: Then please «step». What do you see?\n«customer»: Hmm, «result».\n",
        "«customer»: Should I «step», or is that dangerous?\n«agent»: It is safe. After that, "
        "«step».\n«customer»: OK, «result».\n",
        "«agent»: I have noted ticket #«10000-99999». Since when does it happen?\n«customer»: "
        "Since "
        "«weekday», about «1-12» «half». It «fault».\n"}},
      {"weekday", {"Monday", "last Thursday", "the weekend", "yesterday"}},
      {"half", {"in the morning", "at night"}},
      {"field",
       {"bridges", "the history of paper", "soil", "sleep in birds", "tides", "old maps",
        "languages without writing", "glass"}},
      {"idea",
       {"that small errors add up", "that patience is a method", "that a model is not the thing",
        "that the oldest records are the most honest", "that nobody had counted before",
        "that materials remember how they were treated"}},
      {"interview",
       {"Q: How did you come to study «field»?\nA: By accident. I was supposed to write about "
        "«field», and within a week I had understood «idea». After that there was no way back.\n",
        "Q: What do people get wrong about «field»?\nA: They think it is finished. In truth we "
        "have "
        "«3-40» good measurements and «2-9» theories, and the theories do not agree.\n",
        "Q: Was there a moment of doubt?\nA: Several. In 19«50-99» a result of mine turned out to "
        "be "
        "a loose screw. It taught me «idea».\n",
        "Q: What would you tell a student today?\nA: Learn to count, learn to write, and keep your "
        "samples. And remember «idea»; it will save you a year.\n",
        "Q: What use is the study of «field»?\nA: Useful is a big word. It is like «field»: first "
        "a curiosity, "
        "then "
        "a nuisance, and one morning everybody needs it.\n"}},
      {"topic_question",
       {"Why is the sky dark at night?", "How does a refrigerator move heat?",
        "Why do we use a prime number in a hash table?",
        "What is the difference between a list and "
        "a set?",
        "How do I cook rice without measuring?", "Why does ice float?",
        "How can I remember names better?", "What does a compiler do?"}},
      {"answer_start",
       {"Short answer: it depends on «what».", "Think of it in «2-4» steps.",
        "The usual explanation leaves out «what».", "Good question. Start with «what»."}},
      {"what",
       {"the temperature", "the order of things", "the cost of a mistake", "the boundary",
        "how often it happens", "what you measure"}},
      {"bullet",
       {"- First, write down «what» and compare it with «what».",
        "- Do it «2-9» times; if the results differ by more than «1-20» percent, look for «what».",
        "- Do not change two things at once.", "- When in doubt, prefer the simpler explanation.",
        "- Keep a note of «what»; you will need it later.",
        "- If that fails, go back one step and check «what»."}},
      {"lesson",
       {"User: «topic_question»\nAssistant: «answer_start»\n«bullet»\n«bullet»\n«bullet»\n"
        "User: And what about «what»?\nAssistant: It matters less than «what», but you are right "
        "to "
        "ask. «answer_start»\n"}},
  };
  return rules;
}

}  // namespace

std::string MakeDialogue(SplitMix64& random, size_t target_bytes, size_t variant) {
  static constexpr std::string_view kKinds[] = {"lesson", "support", "interview"};
  const std::string_view kind = kKinds[variant % std::size(kKinds)];
  Grammar grammar(Rules(), random);
  grammar.Bind("thing", grammar.Make("device"));
  grammar.Bind("customer", grammar.Make("customer"));
  grammar.Bind("agent", grammar.Make("agent"));
  return Fill(target_bytes, "\n", [&] { return grammar.Make(kind); });
}

}  // namespace oscar
