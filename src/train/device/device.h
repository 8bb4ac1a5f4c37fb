// SPDX-License-Identifier: Apache-2.0
// Where a run computes.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "config/schema/run_config.h"

namespace welkin::train {

// The GPU of a rank, of those that its process sees: `local_size` ranks share the node, and more than it has GPUs is a
// ConfigError, since NCCL takes one rank per GPU. Where one is seen it is the rank's own.
c10::DeviceIndex gpu_of_rank(int64_t local_rank, int64_t local_size, int64_t num_gpus);

// auto: a GPU where there is one, gpu_of_rank(). cuda without a GPU or without libtorch_cuda is a ConfigError, never a silent CPU
// run. A GPU becomes the current one of the calling thread, which is to be the one that trains.
c10::Device choose_device(config::DeviceChoice choice, int64_t local_rank = 0, int64_t local_size = 1);

// The value of a verb's own flag --device. ConfigError with the names that there are.
config::DeviceChoice device_named(const std::string& name);

// For this thread: autograd's threads take the device of what they compute, and reading threads touch none. ConfigError where the
// driver refuses it.
void make_current(c10::Device device);

// Until `device` has done what this thread's current stream has got; at once on a CPU.
void wait_for_stream(c10::Device device);

// The configuration as data sets are to be opened for a device: on a CPU the device's memory is the host's.
config::RunConfig for_device(config::RunConfig config, c10::Device device);

}  // namespace welkin::train
