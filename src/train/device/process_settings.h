// SPDX-License-Identifier: Apache-2.0
// What a configuration decides for the whole process, as one value: threads, determinism, TF32, cuDNN, the library and precision
// of float32 GEMM, the instruction set of our kernels, the limit of memory. torch keeps these in globals of its own; a session
// sets them for as long as it lives and puts back what it found, so that one configuration leaves nothing behind for the next.
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
  ops::AttentionSwitches attention{};  // which of torch's forms a GPU may take; a set-up narrows it to the fastest
  c10::Device device = c10::kCPU;      // whose memory is limited
  double memory_limit_gib = 0;         // 0: no limit
  bool counts_memory = false;          // of the CPU, without a limit too; does not end with a session

  bool operator==(const ProcessSettings&) const = default;
};

// As they are now. `device`: whose memory limit is asked for.
ProcessSettings current_settings(c10::Device device);

// Those of a configuration: threads 0 are OMP_NUM_THREADS, which launchers set, or the cores of this process; attention is left
// as it is. ConfigError for what contradicts each other on this processor.
ProcessSettings settings_of(const config::RunConfig& config, c10::Device device);

// As they are now, on one thread: for ranks that share the cores of a machine.
ProcessSettings one_thread();

// Not while kernels run. Sessions may be nested; they end in the reverse order. Before the first operator on a GPU: cuBLAS reads
// its rule for workspaces once.
class ProcessSession {
 public:
  // ConfigError for what this processor does not have; then nothing is changed.
  explicit ProcessSession(const ProcessSettings& settings);
  ProcessSession(const config::RunConfig& config, c10::Device device) : ProcessSession(settings_of(config, device)) {}
  ~ProcessSession();
  ProcessSession(const ProcessSession&) = delete;
  ProcessSession& operator=(const ProcessSession&) = delete;

 private:
  ProcessSettings before_;
};

}  // namespace welkin::train
