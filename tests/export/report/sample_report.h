// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reports with the shape of real ones and numbers of their size, made up by a fixed formula: for
// tests of the page and of the zoo that need no model.
#pragma once

#include "capture/files/strict_json.h"

namespace oscar {

struct SampleReportOptions {
  int num_layers = 8;
  int num_kv_heads = 2;
  bool validation = true;  // without: as oscar-calibrate writes it
  bool end_to_end = true;  // without: as made from a dump
  bool gate = true;
  bool gate_passes = true;
  bool kernels = true;
  bool kernels_pass = true;
  bool held_out = true;       // without: the calibration measured nothing
  bool hostile = false;       // markup, scripts, control characters and endless words as text
  bool every_member = false;  // of the schema, with those that few reports have
  int max_length = 4096;      // tokens
};

Json SampleReport(const SampleReportOptions& options = {});

// A model of 64 layers and 8 KV heads at 128K tokens, with every arm.
SampleReportOptions LargeSample();

// Text no page may run or be torn apart by.
inline constexpr const char* kHostileText =
    "</title></style></svg><script>document.title='owned'</script><img src=x onerror=alert(1)>"
    "\" onload='alert(2)' & \x01\x7f\n--> ]]> {{7*7}} "
    "Donaudampfschifffahrtsgesellschaftskapitaenswitwenundwaisenversorgungskassenverwaltungsrat";

}  // namespace oscar
