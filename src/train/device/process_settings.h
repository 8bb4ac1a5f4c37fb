// SPDX-License-Identifier: Apache-2.0
// The settings that a configuration makes for the whole process, as one value: threads, determinism, TF32, cuDNN, the library
// and precision of float32 GEMM, the instruction set of our kernels, the memory limit. torch keeps these in globals of its own;
// a session sets them for its lifetime and then restores the old ones, so that one configuration has no effect on the next.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "config/schema/run_config.h"
#include "ops/attention/attention_backend.h"
#include "ops/base/instruction_set.h"
#include "ops/gemm/gemm_provider.h"

namespace welkin::train {

struct ProcessSettings {
  int64_t threads = 1;  // intra-op
  bool deterministic = false;
  bool cudnn_enabled = true, cudnn_benchmark = false, cudnn_deterministic = false;
  bool tf32_matmul = false, tf32_convolution = false;
  ops::GemmProvider gemm = ops::GemmProvider::Mkl;
  ops::Float32Precision float32_precision = ops::Float32Precision::Highest;
  ops::InstructionSet instruction_set = ops::InstructionSet::Portable;
  ops::AttentionSwitches attention{};  // the forms that torch may take on a GPU; set-up narrows them to the fastest
  c10::Device device = c10::kCPU;      // the device whose memory is limited
  double memory_limit_gib = 0;         // 0: no limit
  bool counts_memory = false;          // on the CPU, without a limit too; does not end with a session

  bool operator==(const ProcessSettings&) const = default;
};

// The present settings. `device` selects the memory limit that is read.
ProcessSettings current_settings(c10::Device device);

// The settings of a configuration. threads 0 means OMP_NUM_THREADS, which launchers set, or the cores of this process.
// Attention stays as it is. ConfigError for settings that contradict each other on this processor.
ProcessSettings settings_of(const config::RunConfig& config, c10::Device device);

// The present settings with one thread: for ranks that share the cores of a machine.
ProcessSettings one_thread();

// Must not begin or end while kernels run. Sessions may be nested; they end in the reverse order. It begins before the first
// operator on a GPU: cuBLAS reads its rule for workspaces once.
class ProcessSession {
 public:
  // ConfigError for settings that this processor does not have; then nothing is changed.
  explicit ProcessSession(const ProcessSettings& settings);
  ProcessSession(const config::RunConfig& config, c10::Device device) : ProcessSession(settings_of(config, device)) {}
  ~ProcessSession();
  ProcessSession(const ProcessSession&) = delete;
  ProcessSession& operator=(const ProcessSession&) = delete;

 private:
  ProcessSettings before_;
};

}  // namespace welkin::train
