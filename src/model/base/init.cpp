// SPDX-License-Identifier: Apache-2.0
// Values are computed on the CPU, in place for a parameter there, else copied to its device.
#include "model/base/init.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "core/philox.h"
#include "ops/random/normal_stream.h"

namespace welkin::model {
namespace {

constexpr int64_t kWordsPerBlock = 4;
constexpr int64_t kPiece = 16384;  // elements of a task
constexpr int64_t kColumn = 64;    // elements side by side in memory of a task of fill_across

// Writes elements [first, first + count) of a parameter, in its logical order.
using Stream = std::function<void(int64_t first, int64_t count, float* out)>;

void fill_along(const Stream& stream, int64_t size, float* out) {
  at::parallel_for(0, (size + kPiece - 1) / kPiece, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kPiece;
    stream(first, std::min(end * kPiece, size) - first, out + first);
  });
}

// True for a convolution's weight whose channels of one side (dim 0 or 1) are contiguous and whose taps (the last three dims)
// far apart. Then the taps of 64 channels at a time are made in the cache and written across.
bool lies_across(const at::Tensor& parameter) {
  const bool is_ours = parameter.is_cpu() && parameter.scalar_type() == at::kFloat && parameter.dim() == 5;
  return is_ours && (parameter.stride(0) == 1 || parameter.stride(1) == 1);
}

void fill_across(const Stream& stream, const at::Tensor& parameter) {
  const int64_t inner = parameter.stride(0) == 1 ? 0 : 1;
  const int64_t outer = 1 - inner;
  const int64_t taps = parameter.size(2) * parameter.size(3) * parameter.size(4);
  const std::array<int64_t, 2> step = {parameter.size(1) * taps, taps};  // in the logical order
  std::vector<int64_t> place;                                            // offset of each tap in memory
  for (int64_t i = 0; i < taps; ++i) {
    place.push_back(i / parameter.size(4) / parameter.size(3) * parameter.stride(2) +
                    i / parameter.size(4) % parameter.size(3) * parameter.stride(3) +
                    i % parameter.size(4) * parameter.stride(4));
  }
  float* data = parameter.mutable_data_ptr<float>();
  const int64_t columns = (parameter.size(inner) + kColumn - 1) / kColumn;
  at::parallel_for(0, parameter.size(outer) * columns, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> runs(static_cast<size_t>(kColumn * taps));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task / columns;
      const int64_t column = task % columns * kColumn;
      const int64_t width = std::min(kColumn, parameter.size(inner) - column);
      for (int64_t c = 0; c < width; ++c) {
        stream(row * step[static_cast<size_t>(outer)] + (column + c) * step[static_cast<size_t>(inner)], taps,
               runs.data() + c * taps);
      }
      for (int64_t i = 0; i < taps; ++i) {
        float* to = data + row * parameter.stride(outer) + place[static_cast<size_t>(i)] + column;
        for (int64_t c = 0; c < width; ++c) to[c] = runs[static_cast<size_t>(c * taps + i)];
      }
    }
  });
}

void fill_from_stream(const at::Tensor& parameter, const Stream& stream) {
  const at::NoGradGuard no_grad;
  if (lies_across(parameter) && !parameter.is_contiguous()) {
    fill_across(stream, parameter);
    return;
  }
  const bool in_place = parameter.is_cpu() && parameter.scalar_type() == at::kFloat && parameter.is_contiguous();
  const at::Tensor host = in_place ? parameter.detach() : at::empty(parameter.sizes(), at::kFloat);
  fill_along(stream, host.numel(), host.mutable_data_ptr<float>());
  if (!in_place) parameter.copy_(host);
}

float uniform_at(uint64_t key, int64_t i, double bound) {
  const PhiloxBlock words = philox(key, 0, static_cast<uint64_t>(i / kWordsPerBlock));
  return static_cast<float>(bound * (2.0 * open_unit(words[static_cast<size_t>(i % kWordsPerBlock)]) - 1.0));
}

}  // namespace

void fill_normal(const at::Tensor& parameter, uint64_t seed, std::string_view name, double deviation) {
  fill_from_stream(parameter, [key = stream_key(seed, name), deviation](int64_t first, int64_t count, float* out) {
    ops::fill_normals(key, first, count, deviation, out);
  });
}

void fill_uniform(const at::Tensor& parameter, uint64_t seed, std::string_view name, double bound) {
  fill_from_stream(parameter, [key = stream_key(seed, name), bound](int64_t first, int64_t count, float* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = uniform_at(key, first + i, bound);
  });
}

void fill_constant(const at::Tensor& parameter, double value) {
  const at::NoGradGuard no_grad;
  parameter.fill_(value);
}

}  // namespace welkin::model
