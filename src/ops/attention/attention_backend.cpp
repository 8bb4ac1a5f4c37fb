// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_backend.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "ops/base/quiet_warnings.h"

namespace welkin::ops {
namespace {

// Torch's switches; the destructor restores them.
class BackendScope {
 public:
  BackendScope() = default;
  ~BackendScope() { set_attention_switches(before_); }
  BackendScope(const BackendScope&) = delete;
  BackendScope& operator=(const BackendScope&) = delete;

 private:
  AttentionSwitches before_ = attention_switches();
};

void allow_only(AttentionBackend backend) {
  at::Context& context = at::globalContext();
  context.setSDPUseFlash(backend == AttentionBackend::Flash);
  context.setSDPUseMemEfficient(backend == AttentionBackend::MemoryEfficient);
  context.setSDPUseCuDNN(backend == AttentionBackend::CuDnn);
  context.setSDPUseMath(backend == AttentionBackend::Math);
}

int64_t weight_bytes(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.tokens * shape.tokens * static_cast<int64_t>(c10::elementSize(shape.dtype));
}

std::optional<double> time_one(AttentionBackend backend, const std::vector<at::Tensor>& qkv, const TimeOf& seconds_of,
                               int repeats) {
  const BackendScope scope;
  allow_only(backend);
  const QuietWarnings quiet;  // torch warns each time about why a form cannot run; here that is the question
  try {
    return seconds_of(
        [&] {
          const at::Tensor out = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]);
          out.backward(at::ones_like(out), /*retain_graph=*/false, /*create_graph=*/false, at::TensorList(qkv));
        },
        repeats);
  } catch (const c10::Error&) {  // "No available kernel", or too little memory for the plain form
    return std::nullopt;
  }
}

}  // namespace

std::string_view name_of(AttentionBackend backend) {
  switch (backend) {
    case AttentionBackend::Flash:
      return "flash";
    case AttentionBackend::MemoryEfficient:
      return "memory_efficient";
    case AttentionBackend::CuDnn:
      return "cudnn";
    case AttentionBackend::Math:
      return "math";
  }
  return {};
}

AttentionSwitches attention_switches() {
  at::Context& context = at::globalContext();
  AttentionSwitches switches{.flash = context.userEnabledFlashSDP(),
                             .memory_efficient = context.userEnabledMemEfficientSDP(),
                             .cudnn = context.userEnabledCuDNNSDP(),
                             .math = context.userEnabledMathSDP()};
  for (const at::SDPBackend form : context.sDPPriorityOrder()) switches.order.push_back(static_cast<int64_t>(form));
  return switches;
}

void set_attention_switches(const AttentionSwitches& switches) {
  at::Context& context = at::globalContext();
  context.setSDPUseFlash(switches.flash);
  context.setSDPUseMemEfficient(switches.memory_efficient);
  context.setSDPUseCuDNN(switches.cudnn);
  context.setSDPUseMath(switches.math);
  if (!switches.order.empty()) context.setSDPPriorityOrder(switches.order);
}

std::string attention_backend_in_use() {
  const at::Context& context = at::globalContext();
  const bool flash = context.userEnabledFlashSDP(), cudnn = context.userEnabledCuDNNSDP();
  if (flash && cudnn) return "aten's choice";
  if (flash || cudnn) return std::string(name_of(flash ? AttentionBackend::Flash : AttentionBackend::CuDnn));
  const bool memory_efficient = context.userEnabledMemEfficientSDP();
  return std::string(name_of(memory_efficient ? AttentionBackend::MemoryEfficient : AttentionBackend::Math));
}

// Flash and cuDNN do not take float32, in which the losses before the first step are computed. The memory-efficient form
// replaces them, since the plain form's weights are tokens x tokens (134 GB for 16 fields of 720 x 1440 in patches of 8). Torch
// tries its order of preference, with cuDNN last, until one can run. Runs that must be deterministic fall back to the plain
// form: the backward pass of the memory-efficient one is not.
void set_attention_backend(AttentionBackend backend) {
  allow_only(backend);
  at::Context& context = at::globalContext();
  context.setSDPUseMath(true);
  if (backend != AttentionBackend::Math && !context.deterministicAlgorithms()) context.setSDPUseMemEfficient(true);
  std::vector<int64_t> order;
  for (const at::SDPBackend form : {at::SDPBackend::cudnn_attention, at::SDPBackend::flash_attention,
                                    at::SDPBackend::efficient_attention, at::SDPBackend::math, at::SDPBackend::overrideable}) {
    order.push_back(static_cast<int64_t>(form));
  }
  context.setSDPPriorityOrder(order);
}

void set_exact_attention() {
  set_attention_backend(AttentionBackend::Flash);
  at::globalContext().setSDPUseMemEfficient(false);
}

std::vector<at::Tensor> attention_operands(const AttentionShape& shape, c10::Device device) {
  const auto options = at::TensorOptions(shape.dtype).device(device);
  std::vector<at::Tensor> qkv;
  for (int i = 0; i < 3; ++i) {
    const int64_t count = shape.batch * shape.heads * shape.tokens * shape.head_dim;
    const at::Tensor waves = at::arange(count, options.dtype(at::kFloat)).mul(0.37 + 0.11 * i).sin().to(shape.dtype);
    const at::Tensor heads_BNHD = waves.view({shape.batch, shape.tokens, shape.heads, shape.head_dim});
    qkv.push_back(heads_BNHD.transpose(1, 2).requires_grad_());
  }
  return qkv;
}

std::vector<AttentionTiming> time_attention(const AttentionShape& shape, c10::Device device, const TimeOf& seconds_of,
                                            int repeats) {
  const at::AutoGradMode with_gradients(true);
  const std::vector<at::Tensor> qkv = attention_operands(shape, device);
  std::vector<AttentionTiming> timings;
  for (const AttentionBackend backend : kAttentionBackends) {
    const bool is_too_large = backend == AttentionBackend::Math && weight_bytes(shape) > kMostWeights && fastest(timings);
    if (is_too_large) {
      timings.push_back({backend, std::nullopt, is_too_large});
    } else {
      timings.push_back({backend, time_one(backend, qkv, seconds_of, repeats)});
    }
  }
  return timings;
}

std::optional<AttentionBackend> fastest(const std::vector<AttentionTiming>& timings) {
  const AttentionTiming* best = nullptr;
  for (const AttentionTiming& timing : timings) {
    if (timing.seconds && (best == nullptr || *timing.seconds < *best->seconds)) best = &timing;
  }
  return best == nullptr ? std::nullopt : std::optional(best->backend);
}

std::string text_of(const std::vector<AttentionTiming>& timings) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2);
  for (const AttentionTiming& timing : timings) {
    out << (timing.backend == timings.front().backend ? "" : ", ") << name_of(timing.backend);
    if (timing.seconds) {
      out << " " << 1e3 * *timing.seconds << " ms";
    } else if (timing.is_too_large) {
      out << " too large to be timed";
    } else {
      out << " cannot";
    }
  }
  return out.str();
}

}  // namespace welkin::ops
