// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "export/measures/report.h"
#include "tests/support/test_data.h"

namespace oscar::measures {
namespace {

template <typename T>
std::string ReadAndWritten(const Json& value) {
  const JsonText text(value, "golden");
  T read;
  Read(Spot{text.root(), "golden"}, read);
  return Json(read).dump();
}

// Reading and writing each struct must give the bytes that programs have written.
TEST(Measures, AreWrittenAsTheyWereRead) {
  for (const char* file :
       {"reports/of_a_run.json", "validations/artifact.json", "validations/chosen.json"}) {
    const Json validation = ReadJsonFile(TestData(file)).at("validation");
    for (const Json& arm : validation.at("arms"))
      EXPECT_EQ(ReadAndWritten<Arm>(arm), arm.dump()) << file;
    const Json& gate = validation.at("gate");
    EXPECT_EQ(ReadAndWritten<Gate>(gate), gate.dump()) << file;
    if (!validation.contains("by_distance")) continue;
    const Json& by_distance = validation.at("by_distance");
    EXPECT_EQ(ReadAndWritten<ByDistance>(by_distance), by_distance.dump()) << file;
  }
}

}  // namespace
}  // namespace oscar::measures
