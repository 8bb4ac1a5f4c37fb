// SPDX-License-Identifier: Apache-2.0
// The device on which a run computes.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "config/schema/run_config.h"

namespace welkin::train {

// The index of a rank's GPU among those that its process sees. `local_size` ranks share the node; more ranks than GPUs are a
// ConfigError, since NCCL takes one rank per GPU. If the process sees one GPU, it is the rank's own.
c10::DeviceIndex gpu_of_rank(int64_t local_rank, int64_t local_size, int64_t num_gpus);

// auto: a GPU if there is one, by gpu_of_rank(). cuda without a GPU or without libtorch_cuda is a ConfigError, never a silent
// CPU run. The GPU becomes the current one of the calling thread, which has to be the training thread.
c10::Device choose_device(config::DeviceChoice choice, int64_t local_rank = 0, int64_t local_size = 1);

// The value of a verb's own flag --device. ConfigError, which lists the names, for another one.
config::DeviceChoice device_named(const std::string& name);

// Sets the current device of this thread. Autograd's threads set their own, and reading threads touch none. ConfigError if the
// driver refuses it.
void make_current(c10::Device device);

// Waits until `device` has finished the work on this thread's current stream; returns at once on a CPU.
void wait_for_stream(c10::Device device);

// The configuration with which data sets are opened for a device: on a CPU the device's memory is the host's.
config::RunConfig for_device(config::RunConfig config, c10::Device device);

}  // namespace welkin::train
