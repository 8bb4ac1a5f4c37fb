// SPDX-License-Identifier: Apache-2.0
// Torch's forms of attention on a GPU. The fastest one depends on head dim, number of tokens, type and device, and torch's
// order of preference considers little of this. So they are timed, forward and backward, with the model's shape.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::ops {

enum class AttentionBackend { Flash, MemoryEfficient, CuDnn, Math };
inline constexpr AttentionBackend kAttentionBackends[] = {AttentionBackend::Flash, AttentionBackend::MemoryEfficient,
                                                          AttentionBackend::CuDnn, AttentionBackend::Math};

std::string_view name_of(AttentionBackend backend);  // as in the key `attention`

// Torch's own switches and its order of preference (at::SDPBackend as numbers).
struct AttentionSwitches {
  bool flash = true, memory_efficient = true, cudnn = true, math = true;
  std::vector<int64_t> order{};

  bool operator==(const AttentionSwitches&) const = default;
};
AttentionSwitches attention_switches();
void set_attention_switches(const AttentionSwitches& switches);

// "flash"; "aten's choice" before set_attention_backend().
std::string attention_backend_in_use();

// From now on torch uses this form where it can; else the memory-efficient one, unless algorithms must be deterministic; else
// the plain one (Math). Process-wide.
void set_attention_backend(AttentionBackend backend);
// For comparisons: float32 by matmuls (the memory-efficient form's gradients of q and k are off by 2e-5), 16 bits by flash.
void set_exact_attention();

struct AttentionTiming {
  AttentionBackend backend;
  std::optional<double> seconds;  // forward and backward together; nothing if it cannot run
  bool is_too_large = false;      // not timed: the plain form, whose weights would exceed kMostWeights
};
// Bytes of weights (batch, heads, tokens, tokens) up to which the plain form is timed if another form can run. At larger
// sizes it is slower, and its backward pass holds several such tensors.
inline constexpr int64_t kMostWeights = int64_t{1} << 29;

struct AttentionShape {
  int64_t batch = 1, heads = 1, tokens = 1, head_dim = 1;
  at::ScalarType dtype = at::kFloat;
};

// q, k and v (batch, heads, tokens, head_dim). The heads of a token are contiguous, as matmuls leave them; a form may use that
// layout or copy.
std::vector<at::Tensor> attention_operands(const AttentionShape& shape, c10::Device device);

// Times each form on the same q, k and v, attention_operands(): `repeats` runs after two warm-up runs. It restores the settings
// afterwards. `seconds_of` runs the work `repeats` times and returns the time of one run on the device.
using TimeOf = std::function<double(const std::function<void()>& work, int repeats)>;
std::vector<AttentionTiming> time_attention(const AttentionShape& shape, c10::Device device, const TimeOf& seconds_of,
                                            int repeats = 5);
// The fastest form that can run; of equal ones the earlier. Nothing if none can.
std::optional<AttentionBackend> fastest(const std::vector<AttentionTiming>& timings);

// "flash 1.21 ms, memory_efficient 1.80 ms, cudnn cannot, math 9.00 ms".
std::string text_of(const std::vector<AttentionTiming>& timings);

}  // namespace welkin::ops
