// SPDX-License-Identifier: Apache-2.0
#include "train/device/kernel_choice.h"

#include <ATen/Parallel.h>

#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_backend.h"
#include "ops/base/instruction_set.h"
#include "ops/convolution/convolution.h"
#include "ops/gemm/gemm_provider.h"
#include "ops/gemm/mixed_matmul.h"
#include "train/learn/precision.h"

namespace welkin::train {
namespace {

constexpr std::string_view kKernelPrefix = "kernels.";

// The text behind the provider of float32 matmuls: the form in which they are computed.
std::string_view form_of_matmuls(c10::Device device, at::ScalarType dtype) {
  if (dtype != at::kFloat) return ops::upcasts_matmul(device, dtype) ? " in float32" : "";
  constexpr std::string_view kForms[] = {"", " of operands rounded to bfloat16", " and welkin of operands in two bfloat16"};
  return kForms[ops::float32_parts()];
}

std::string short_name(const std::string& key) { return key.substr(kKernelPrefix.size()); }

}  // namespace

KernelChoice kernel_choice(const config::RunConfig& config, const model::ModelEntry& model, c10::Device device) {
  const at::ScalarType dtype = autocast_dtype(config.precision.amp_mode).value_or(at::kFloat);
  const bool has_attention = model.has_attention.value_or(true), has_convolutions = model.has_convolutions.value_or(true);
  KernelChoice choice;
  if (has_attention) choice["kernels.attention"] = ops::attention_form(device, dtype, config.model.dropout > 0);
  if (has_convolutions) choice["kernels.convolutions"] = ops::convolution_form(device, dtype);
  if (!device.is_cpu()) {
    if (has_attention && config.model.dropout == 0) choice["kernels.attention"] = ops::attention_backend_in_use();
    choice["kernels.gemm"] = cat("cublas, tf32 ", name_of(config.backend.tf32));
    return choice;
  }
  choice["kernels.gemm"] = cat(name_of(ops::gemm_provider()), form_of_matmuls(device, dtype));
  choice["kernels.instruction_set"] = name_of(ops::instruction_set());
  choice["kernels.threads"] = cat(at::get_num_threads());
  return choice;
}

std::string kernels_line(const KernelChoice& choice) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : choice) parts.push_back(cat(short_name(key), " ", value));
  return cat("Kernels: ", join(parts, ", "));
}

std::string kernel_changes(const std::map<std::string, std::string>& stored, const KernelChoice& now) {
  std::vector<std::string> changes;
  for (const auto& [key, value] : now) {
    const auto before = stored.find(key);
    if (before != stored.end() && before->second != value)
      changes.push_back(cat(short_name(key), " ", before->second, " and ", value));
  }
  return join(changes, ", ");
}

std::string check_kernels(const std::map<std::string, std::string>& stored, const KernelChoice& now, bool deterministic) {
  const std::string changes = kernel_changes(stored, now);
  if (changes.empty()) return {};
  if (deterministic) {
    throw CheckpointError(
        "checkpoint", cat("it was saved with other kernels, which give other bits: ", changes),
        "Name those of the checkpoint with --gemm, --instruction_set and --threads, on a processor that has them, or "
        "go on without --deterministic");
  }
  return cat("Other kernels than in the checkpoint: ", changes, "; from here on the run equals an uninterrupted one to rounding");
}

}  // namespace welkin::train
