// SPDX-License-Identifier: Apache-2.0
// The meaning of the tutorials' speed switches here, on a CPU and on a GPU: one table, from which the notes of a run and
// docs/reference/switches.md are made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/resolve/resolve.h"
#include "config/schema/run_config.h"

namespace welkin::config {

enum class DeviceKind { Cpu, Cuda };

struct SwitchMeaning {
  std::string_view name;   // flat name of the key: enable_jit
  std::string_view value;  // the value that this row is about: on, off, fp16, dali, ...
  std::string_view cpu;    // its meaning on a CPU, one sentence without full stop
  std::string_view gpu;    // its meaning on a GPU
};

// All rows, switches and values in the order of docs/reference/switches.md.
const std::vector<SwitchMeaning>& switch_meanings();

// One line per switch that is on (or loader kind or amp_mode that is set): its meaning in this run on this device.
std::vector<std::string> switch_notes(const RunConfig& config, DeviceKind device);

// One line for the start of a run: TF32 and cuDNN's settings, each with its origin.
std::string backend_note(const Resolved& resolved, DeviceKind device);

// The table as it stands in docs/reference/switches.md.
std::string switch_table_markdown();

}  // namespace welkin::config
