// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes reports by a fixed formula, with the shape and the magnitudes of real ones. Tests of the
// page and the zoo use them and need no model.
#pragma once

#include "capture/files/strict_json.h"

namespace oscar {

struct SampleReportOptions {
  int num_layers = 8;
  int num_kv_heads = 2;
  bool validation = true;  // false: as oscar-calibrate writes it
  bool end_to_end = true;  // false: as made from a dump
  bool gate = true;
  bool gate_passes = true;
  bool kernels = true;
  bool kernels_pass = true;
  bool held_out = true;       // false: the calibration measured nothing
  bool hostile = false;       // texts are markup, scripts, control characters and endless words
  bool every_member = false;  // includes members that few reports have
  int max_length = 4096;      // tokens
};

Json SampleReport(const SampleReportOptions& options = {});

// Returns the options of a model with 64 layers and 8 KV heads at 128K tokens, with every arm.
SampleReportOptions LargeSample();

// Text that must neither run as code nor break the layout of a page.
inline constexpr const char* kHostileText =
    "</title></style></svg><script>document.title='owned'</script><img src=x onerror=alert(1)>"
    "\" onload='alert(2)' & \x01\x7f\n--> ]]> {{7*7}} "
    "Donaudampfschifffahrtsgesellschaftskapitaenswitwenundwaisenversorgungskassenverwaltungsrat";

}  // namespace oscar
