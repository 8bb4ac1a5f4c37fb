// SPDX-License-Identifier: Apache-2.0
#include "train/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "core/error.h"
#include "core/host.h"
#include "core/text.h"

namespace welkin::train {
namespace {

// The hooks are there once libtorch_cuda is loaded (the launcher does that where a device node exists).
bool has_gpu() { return at::globalContext().hasCUDA() && at::detail::getCUDAHooks().deviceCount() > 0; }

}  // namespace

c10::Device choose_device(const std::string& name) {
  if (name == "cpu" || (name == "auto" && !has_gpu())) return at::kCPU;
  if (!has_gpu()) {
    throw ConfigError("device", cat("there is no GPU that torch can use: device=", name),
                      "Take --device cpu or auto; welkin doctor shows what is missing");
  }
  return {at::kCUDA, 0};
}

void configure_torch(const config::LoopConfig& config) {
  at::set_num_threads(config.threads > 0 ? static_cast<int>(config.threads) : usable_cores());
  at::globalContext().setDeterministicAlgorithms(config.deterministic, /*warn_only=*/false);
}

}  // namespace welkin::train
