// SPDX-License-Identifier: Apache-2.0
// Torch's forms of attention on a GPU. Which is fastest depends on head dim, number of tokens, type and device, and torch's own
// order of preference knows of these little; so they are timed, forward and backward, with the model's shape.
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

std::string_view name_of(AttentionBackend backend);  // as the key `attention` has them

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

// From now on torch takes this form where it can; else the memory-efficient one, unless algorithms are to be deterministic; else
// the plain one (Math). Process-wide.
void set_attention_backend(AttentionBackend backend);
// For comparisons: float32 by matmuls (gradients of q and k of the memory-efficient form are off by 2e-5), 16 bits by flash.
void set_exact_attention();

struct AttentionTiming {
  AttentionBackend backend;
  std::optional<double> seconds;  // forward and backward together; nothing where it cannot run
  bool is_too_large = false;      // not timed: the plain form, whose weights alone would take kMostWeights
};
// Bytes of weights (batch, heads, tokens, tokens) up to which the plain form is timed beside one that needs none. It is slower at
// such sizes, and its backward pass holds several tensors of this kind.
inline constexpr int64_t kMostWeights = int64_t{1} << 29;

struct AttentionShape {
  int64_t batch = 1, heads = 1, tokens = 1, head_dim = 1;
  at::ScalarType dtype = at::kFloat;
};

// q, k and v (batch, heads, tokens, head_dim), the heads of a token side by side, as matmuls leave them: a form may be made for
// that or copy them.
std::vector<at::Tensor> attention_operands(const AttentionShape& shape, c10::Device device);

// Each form alone on the same q, k and v, attention_operands(). It runs `repeats` times after two to warm up; the settings are as
// before then. `seconds_of` runs a piece of work so often and says how long one took on the device.
using TimeOf = std::function<double(const std::function<void()>& work, int repeats)>;
std::vector<AttentionTiming> time_attention(const AttentionShape& shape, c10::Device device, const TimeOf& seconds_of,
                                            int repeats = 5);
// The fastest that can run; where two are alike the earlier one. Nothing where none can.
std::optional<AttentionBackend> fastest(const std::vector<AttentionTiming>& timings);

// "flash 1.21 ms, memory_efficient 1.80 ms, cudnn cannot, math 9.00 ms".
std::string text_of(const std::vector<AttentionTiming>& timings);

}  // namespace welkin::ops
