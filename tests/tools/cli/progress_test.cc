// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests progress with a clock that the test sets: the estimate, the printed lines, and what a
// terminal shows.
#include "tools/cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tools/cli/text_table.h"

namespace oscar {
namespace {

struct Fake {
  std::ostringstream err;
  double now = 1000;
  int columns = 100;
  Console MakeConsole(bool live) {
    Console console;
    console.err = &err;
    console.live = live;
    console.err_columns = [this] { return columns; };
    console.seconds = [this] { return now; };
    console.utc = [] { return std::string("2026-01-31T12:00:00.000Z"); };
    return console;
  }
};

TEST(Progress, EstimatesFromTheLastEightSteps) {
  Fake fake;
  Log log(fake.MakeConsole(false), LogFormat::kText, false);
  Progress progress(&log);
  progress.Begin("calibrating", 20);
  EXPECT_LT(progress.SecondsLeft(), 0);
  fake.now += 1000;  // one slow step, forgotten after eight more
  progress.StepDone("layer 0", Json::object());
  EXPECT_DOUBLE_EQ(progress.SecondsLeft(), 19 * 1000.0);
  for (int i = 1; i <= 8; ++i) {
    fake.now += 2;
    progress.StepDone("layer", Json::object());
  }
  EXPECT_DOUBLE_EQ(progress.SecondsLeft(), 11 * 2.0);
  fake.now += 0.5;  // within a step the estimate counts down
  EXPECT_DOUBLE_EQ(progress.SecondsLeft(), 11 * 2.0 - 0.5);
  fake.now += 100;  // but a step that takes long is not counted as several
  EXPECT_DOUBLE_EQ(progress.SecondsLeft(), 10 * 2.0);
}

TEST(Progress, StepsOfAnEarlierRunDoNotCountAsFast) {
  Fake fake;
  Log log(fake.MakeConsole(false), LogFormat::kText, false);
  Progress progress(&log);
  progress.Begin("calibrating", 10, 6);
  fake.now += 3;
  progress.StepDone("layer 6", Json::object());
  EXPECT_DOUBLE_EQ(progress.SecondsLeft(), 3 * 3.0);
  EXPECT_NE(progress.Line(80).find("7/10  70%"), std::string::npos) << progress.Line(80);
}

TEST(Progress, PlainLinesWhereThereIsNoTerminal) {
  Fake fake;
  {
    Log log(fake.MakeConsole(false), LogFormat::kText, false);
    Progress progress(&log);
    progress.Begin("calibrating", 2);
    fake.now += 5;
    progress.Update(0.5, "chunk 1");
    progress.StepDone("layer 0: 30000 tokens", {{"layer", 0}});
    progress.End();
  }
  EXPECT_EQ(fake.err.str(), "layer 0: 30000 tokens\n");
}

TEST(Progress, OneLiveLineBelowThePermanentOnes) {
  Fake fake;
  {
    Log log(fake.MakeConsole(true), LogFormat::kText, false);
    Progress progress(&log);
    progress.Begin("calibrating", 2);
    fake.now += 0.05;
    progress.Update(0.1, "too soon to redraw");
    fake.now += 4.95;
    progress.Update(0.5, "chunk 1 of 2");
    progress.StepDone("layer 0: done", Json::object());
    log.Info("note", "a note");
    progress.End();
  }
  const std::string erase = "\r\033[K";
  const std::string half = "calibrating  [############............]  1/2  50%  ETA 5 s";
  EXPECT_EQ(
      fake.err.str(),
      erase + "calibrating  [........................]  0/2   0%" +                    // Begin
          erase + "calibrating  [######..................]  0/2  25%  chunk 1 of 2" +  // Update
          erase + "layer 0: done\ncalibrating  [######..................]  0/2  25%  chunk 1 of 2" +
          erase + half +               // StepDone
          erase + "a note\n" + half +  // Info
          erase);                      // End
}

TEST(Progress, NarrowTerminalsLoseTheLeastUsefulParts) {
  Fake fake;
  Log log(fake.MakeConsole(true), LogFormat::kText, false);
  Progress progress(&log);
  progress.Begin("calibrating", 36);
  fake.now += 10;
  progress.StepDone("layer", Json::object());
  fake.now += 1;
  progress.Update(0.5, "chunk 漢字 of 2");
  for (int columns = 0; columns < 120; ++columns) {
    const std::string line = progress.Line(columns);
    EXPECT_LE(CountColumns(line), columns) << line;
  }
  EXPECT_EQ(progress.Line(30), "1/36   4%  ETA 5 min 49 s");
  EXPECT_EQ(progress.Line(12), "1/36   4%");
  EXPECT_EQ(progress.Line(4), "1/36");
  EXPECT_EQ(progress.Line(60), "calibrating  1/36   4%  ETA 5 min 49 s");
}

TEST(Progress, QuietAndJsonShowNoLiveLine) {
  Fake fake;
  {
    Log log(fake.MakeConsole(true), LogFormat::kText, true);
    Progress progress(&log);
    progress.Begin("calibrating", 1);
    progress.StepDone("layer 0", Json::object());
  }
  EXPECT_EQ(fake.err.str(), "");
  {
    Log log(fake.MakeConsole(true), LogFormat::kJson, false);
    Progress progress(&log);
    progress.Begin("calibrating", 1);
    progress.StepDone("layer 0", {{"layer", 0}, {"tokens", 30000}});
  }
  EXPECT_EQ(Json::parse(fake.err.str()), (Json{{"event", "step_done"},
                                               {"fields", {{"layer", 0}, {"tokens", 30000}}},
                                               {"level", "info"},
                                               {"message", "layer 0"},
                                               {"time", "2026-01-31T12:00:00.000Z"}}));
}

TEST(Progress, DurationsInWords) {
  EXPECT_EQ(Duration(0), "0 s");
  EXPECT_EQ(Duration(0.2), "1 s");
  EXPECT_EQ(Duration(59), "59 s");
  EXPECT_EQ(Duration(59.5), "1 min 00 s");
  EXPECT_EQ(Duration(7620), "2 h 07 min");
}

TEST(Console, WrapsAtSpaces) {
  const auto wrapped = [](std::string_view text, int columns) {
    std::string out = "# ";
    AppendWrapped(text, "# ", columns, &out);
    return out;
  };
  EXPECT_EQ(wrapped("one two three", 9), "# one two\n# three\n");
  EXPECT_EQ(wrapped("one two three", 8), "# one\n# two\n# three\n");
  EXPECT_EQ(wrapped("incomprehensible", 8), "# incomprehensible\n");
  EXPECT_EQ(wrapped("", 8), "# \n");
}

TEST(Console, CutsAtCharactersAndCountsWideOnesTwice) {
  EXPECT_EQ(CountColumns("a\u00e9\u6f22"), 4);  // 1, 1 and 2 columns
  EXPECT_EQ(FitColumns("\u6f22\u5b57x", 3), "\u6f22");
  EXPECT_EQ(FitColumns("\u6f22\u5b57x", 4), "\u6f22\u5b57");
  EXPECT_EQ(FitColumns("\u6f22\u5b57x", 5), "\u6f22\u5b57x");
  EXPECT_EQ(FitColumns("abc", 0), "");
}

TEST(Log, ColoursOnlyWhereColourIsWanted) {
  Fake fake;
  Console console = fake.MakeConsole(true);
  Log(console, LogFormat::kText, true).Error("failed", "bad");
  console.color = true;
  Log(console, LogFormat::kText, true).Error("failed", "bad");
  EXPECT_EQ(fake.err.str(), "error: bad\n\033[1;31merror:\033[0m bad\n");
}

TEST(Log, JsonLinesSurviveHostileText) {
  const std::string line = LogLineJson(LogLevel::kError, "failed", "a\nb \xff", Json::object(), "");
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(Json::parse(line).at("message"), "a\nb \xEF\xBF\xBD");
}

TEST(TextTable, AlignsWordsLeftAndNumbersRight) {
  TextTable table({"layer", ">KL"});
  table.AddRow({"0", "1.25"});
  table.AddRow({"a\tb", "10.5"});
  EXPECT_EQ(table.ToString(), "layer    KL\n-----  ----\n0      1.25\na?b    10.5\n");
}

}  // namespace
}  // namespace oscar
