// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The names and colours of arms (measured configurations), the same in every chart and table. The
// colour depends on the method; the headline arm has the accent colour. Dashed lines mean "not
// clipped", and null controls are grey.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/report/record.h"

namespace oscar {

struct ArmLook {
  Record arm;
  std::string label;        // plain text: "OSCAR per head, clip, windows"
  std::string chart_label;  // without windows, for charts whose arms have the same windows
  std::string css;          // colour class: s0 to s5, sn for null controls, sr for the reference
  std::string line_css;     // `css`, followed by "strong" or "dashed" if the line is drawn so
  bool headline = false;
  bool null_control = false;
  bool windows = false;
};

// Returns the arms of report["validation"], in the record's order.
std::vector<ArmLook> LookOfArms(const Record& validation);
const ArmLook& HeadlineOf(const std::vector<ArmLook>& arms);

// Return the first cell of an arm's table row (colour, label, mark of a null control), and the
// row's CSS class.
std::string ArmNameHtml(const ArmLook& look);
std::string ArmRowCss(const ArmLook& look);

// Returns a method's name for people: "OSCAR per head" for "oscar_per_head".
std::string MethodLabel(std::string_view method);

// The arms that oscar-calibrate measures, by name in the record's "arms" objects: name, label and
// colour.
struct CalibrationArm {
  std::string name, label, css, line_css;
};
std::vector<CalibrationArm> LookOfCalibrationArms(const Record& summary);
// Returns the arm that represents the calibration: the automatic choice, else OSCAR per head, else
// OSCAR shared, else the last arm. Empty if none was measured.
std::string CalibrationHeadline(const Record& summary);

// Returns the colour class of a layer by its depth: d0 (first) to d9 (last).
std::string DepthCss(size_t index, size_t count);

}  // namespace oscar
