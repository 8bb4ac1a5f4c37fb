// SPDX-License-Identifier: Apache-2.0
// Blocks of four random words, computed on the CPU and copied to where the parameter lives.
#include "model/initial.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>

#include "core/philox.h"

namespace welkin::model {
namespace {

constexpr int64_t kWordsPerBlock = 4;

std::array<double, 4> normal_block(const PhiloxBlock& words) {
  const std::array<double, 2> first = normal_pair(words[0], words[1]);
  const std::array<double, 2> second = normal_pair(words[2], words[3]);
  return {first[0], first[1], second[0], second[1]};
}

std::array<double, 4> uniform_block(const PhiloxBlock& words) {
  std::array<double, 4> values{};
  std::transform(words.begin(), words.end(), values.begin(), [](uint32_t word) { return 2.0 * open_unit(word) - 1.0; });
  return values;
}

// values_of maps a block of words to four standard values, which are scaled.
template <typename ValuesOf>
void fill_from_stream(const at::Tensor& parameter, uint64_t key, double scale, ValuesOf values_of) {
  const at::NoGradGuard no_grad;
  const at::Tensor host = at::empty(parameter.sizes(), at::kFloat);
  float* out = host.data_ptr<float>();
  const int64_t size = host.numel();
  const int64_t num_blocks = (size + kWordsPerBlock - 1) / kWordsPerBlock;
  at::parallel_for(0, num_blocks, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const std::array<double, 4> values = values_of(philox(key, 0, static_cast<uint64_t>(block)));
      const int64_t first = block * kWordsPerBlock;
      const int64_t count = std::min(kWordsPerBlock, size - first);
      for (int64_t i = 0; i < count; ++i) out[first + i] = static_cast<float>(scale * values[static_cast<size_t>(i)]);
    }
  });
  parameter.copy_(host);
}

}  // namespace

void fill_normal(const at::Tensor& parameter, uint64_t seed, std::string_view name, double deviation) {
  fill_from_stream(parameter, stream_key(seed, name), deviation, normal_block);
}

void fill_uniform(const at::Tensor& parameter, uint64_t seed, std::string_view name, double bound) {
  fill_from_stream(parameter, stream_key(seed, name), bound, uniform_block);
}

void fill_constant(const at::Tensor& parameter, double value) {
  const at::NoGradGuard no_grad;
  parameter.fill_(value);
}

}  // namespace welkin::model
