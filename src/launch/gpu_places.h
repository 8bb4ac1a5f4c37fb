// SPDX-License-Identifier: Apache-2.0
// The places of this machine's GPUs, from /proc and /sys. They are needed before torch is loaded, which reads its cores then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace welkin::launch {

// The NUMA node of each GPU that CUDA shows, in its order of the bus (it lists the fastest first, which equal ones all are).
// `visible` is CUDA_VISIBLE_DEVICES, null: not set; `root` is "/" but in tests. Empty where the node of one is not known: no
// NVIDIA driver, parts of a GPU (MIG), a name that is no GPU's, a machine that does not say.
std::vector<int64_t> gpu_numa_nodes(const char* visible, const std::filesystem::path& root = "/");

}  // namespace welkin::launch
