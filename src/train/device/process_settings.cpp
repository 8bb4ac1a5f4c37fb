// SPDX-License-Identifier: Apache-2.0
#include "train/device/process_settings.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/process/host.h"
#include "ops/base/large_blocks.h"
#include "train/device/device_memory.h"

namespace welkin::train {
namespace {

constexpr int kMeasuredAlgorithms = 4;  // cuDNN algorithms that are timed for each convolution

int64_t default_threads() {
  static const int at_start = at::get_num_threads();  // OMP_NUM_THREADS if set; later calls return a session's number
  return std::min<int64_t>(at_start, usable_cores());
}

std::optional<ops::GemmProvider> named_provider(config::Gemm gemm) {
  switch (gemm) {
    case config::Gemm::Mkl:
      return ops::GemmProvider::Mkl;
    case config::Gemm::OneDnn:
      return ops::GemmProvider::OneDnn;
    case config::Gemm::Auto:
      break;
  }
  return std::nullopt;
}

ops::Float32Precision named_precision(config::MatmulPrecision precision) {
  switch (precision) {
    case config::MatmulPrecision::High:
      return ops::Float32Precision::High;
    case config::MatmulPrecision::Medium:
      return ops::Float32Precision::Medium;
    case config::MatmulPrecision::Highest:
      break;
  }
  return ops::Float32Precision::Highest;
}

ops::InstructionSet named_set(config::InstructionSet set) {
  switch (set) {
    case config::InstructionSet::Portable:
      return ops::InstructionSet::Portable;
    case config::InstructionSet::Avx2:
      return ops::InstructionSet::Avx2;
    case config::InstructionSet::Avx512:
      return ops::InstructionSet::Avx512;
    case config::InstructionSet::Amx:
      return ops::InstructionSet::Amx;
    case config::InstructionSet::Auto:
      break;
  }
  return ops::best_instruction_set();
}

void apply(const ProcessSettings& settings) {
  // Settings that may be refused come first.
  ops::set_instruction_set(settings.instruction_set);
  ops::set_float32_matmul(settings.gemm, settings.float32_precision);
  limit_memory(settings.device, settings.memory_limit_gib);
  if (settings.counts_memory) count_cpu_memory();
  at::set_num_threads(static_cast<int>(settings.threads));
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(settings.deterministic, /*warn_only=*/false);
  context.setUserEnabledCuDNN(settings.cudnn_enabled);
  context.setBenchmarkCuDNN(settings.cudnn_benchmark);
  // cuDNN lists the likeliest first. Ten of a channels-last convolution, torch's number, compile half a minute in a U-Net.
  context.setBenchmarkLimitCuDNN(kMeasuredAlgorithms);
  context.setDeterministicCuDNN(settings.cudnn_deterministic);
  context.setAllowTF32CuBLAS(settings.tf32_matmul);
  context.setAllowTF32CuDNN(settings.tf32_convolution);
  ops::set_attention_switches(settings.attention);
}

}  // namespace

ProcessSettings current_settings(c10::Device device) {
  const at::Context& context = at::globalContext();
  return {.threads = at::get_num_threads(),
          .deterministic = context.deterministicAlgorithms(),
          .cudnn_enabled = context.userEnabledCuDNN(),
          .cudnn_benchmark = context.benchmarkCuDNN(),
          .cudnn_deterministic = context.deterministicCuDNN(),
          .tf32_matmul = context.allowTF32CuBLAS(),
          .tf32_convolution = context.allowTF32CuDNN(),
          .gemm = ops::gemm_provider(),
          .float32_precision = ops::float32_precision(),
          .instruction_set = ops::instruction_set(),
          .attention = ops::attention_switches(),
          .device = device,
          .memory_limit_gib = memory_limit_gib(device)};
}

ProcessSettings settings_of(const config::RunConfig& config, c10::Device device) {
  const config::BackendConfig& backend = config.backend;
  ProcessSettings settings = current_settings(device);
  settings.threads = config.loop.threads > 0 ? config.loop.threads : default_threads();
  settings.deterministic = config.loop.deterministic;
  settings.cudnn_enabled = backend.cudnn_enabled;
  settings.cudnn_benchmark = backend.cudnn_benchmark;
  settings.cudnn_deterministic = backend.cudnn_deterministic;
  settings.tf32_matmul = settings.tf32_convolution = backend.tf32 == config::Tf32::On;
  settings.float32_precision = named_precision(backend.float32_matmul_precision);
  settings.gemm = ops::provider_beside(named_provider(backend.gemm), settings.float32_precision);
  settings.instruction_set = named_set(backend.instruction_set);
  settings.memory_limit_gib = backend.memory_limit_gib;
  settings.counts_memory = device.is_cpu() && (config.loop.activation_checkpointing.part == config::CheckpointedPart::Budget ||
                                               config.loop.micro_batch_size.is_auto);
  return settings;
}

ProcessSettings one_thread() {
  ProcessSettings settings = current_settings(c10::kCPU);
  settings.threads = 1;
  return settings;
}

ProcessSession::ProcessSession(const ProcessSettings& settings) : before_(current_settings(settings.device)) {
  ops::use_page_heap();  // before memory is counted: the count is a layer around it
  // Without it cuBLAS takes its workspace from a pool; two streams' matmuls may differ from run to run. torch refuses that.
  if (settings.deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  try {
    apply(settings);
  } catch (...) {
    apply(before_);
    throw;
  }
}

ProcessSession::~ProcessSession() { apply(before_); }

}  // namespace welkin::train
