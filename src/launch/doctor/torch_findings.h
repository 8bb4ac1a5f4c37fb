// SPDX-License-Identifier: Apache-2.0
// The torch that would be loaded, and the GPUs as the driver shows them. Only the driver's own library is
// loaded into this process.
#pragma once

#include "launch/doctor/finding.h"
#include "launch/torch_location.h"

namespace welkin::launch {

// The torch that the search finds, and whether the program starts with it: `program` is asked for its version
// in a process of its own.
Findings torch_findings(const TorchSearch& search, const std::filesystem::path& program);

// Devices with their memory, the driver's CUDA against torch's, and whether each reaches each. `package`: torch's folder, or
// empty.
Findings gpu_findings(const std::filesystem::path& package);

}  // namespace welkin::launch
