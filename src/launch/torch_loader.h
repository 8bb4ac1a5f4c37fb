// SPDX-License-Identifier: Apache-2.0
// Loads torch's libraries and then libwelkin.so into a process that was linked to neither.
#pragma once

#include <filesystem>

namespace welkin::launch {

// Sets the variables that libgomp and kineto read while they load, where the user has not set them. Before
// load_torch.
void set_loading_environment();

// True if CUDA would show no device for this value of CUDA_VISIBLE_DEVICES; null: it is not set.
bool hides_every_gpu(const char* visible);

// True if this machine shows an NVIDIA device that the environment does not hide: then torch's CUDA libraries are needed.
bool has_cuda_device();

// Loads libc10 and libtorch_cpu, with symbols visible to libraries that are loaded later, and libtorch_cuda where asked: torch
// remembers the first answer to "is there CUDA?", so it cannot be loaded later. Throws ConfigError with the loader's text.
void load_torch(const std::filesystem::path& package, bool with_cuda);

using MainFunction = int (*)(int argc, char** argv);

// The entry of the libwelkin.so that belongs to the executable in `folder`: beside it (build folder) or in ../lib (installed).
// With CUDA also libwelkin_cuda.so where it was built: without it our operators run in their aten form there.
MainFunction load_welkin(const std::filesystem::path& folder, bool with_cuda);

}  // namespace welkin::launch
