// SPDX-License-Identifier: Apache-2.0
// The CPU kernel. Blocks are computed sixteen at a time in arrays of lanes, which the compiler turns into vector code.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/philox.h"
#include "ops/philox_dropout_kernel.h"

namespace welkin::ops {
namespace {

constexpr int kLanes = 16;
constexpr int64_t kChunk = 4 * kLanes;  // elements of one round of lanes

// words[w][lane] of block first_block + lane.
using LaneWords = std::array<std::array<uint32_t, kLanes>, 4>;

void philox_lanes(uint64_t key, uint64_t high, uint64_t first_block, LaneWords& c) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t block = first_block + lane;
    c[0][lane] = static_cast<uint32_t>(block);
    c[1][lane] = static_cast<uint32_t>(block >> 32);
    c[2][lane] = static_cast<uint32_t>(high);
    c[3][lane] = static_cast<uint32_t>(high >> 32);
  }
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t p0 = uint64_t{0xD2511F53U} * c[0][lane];
      const uint64_t p1 = uint64_t{0xCD9E8D57U} * c[2][lane];
      const uint32_t a = static_cast<uint32_t>(p1 >> 32) ^ c[1][lane] ^ k0;
      const uint32_t b = static_cast<uint32_t>(p0 >> 32) ^ c[3][lane] ^ k1;
      c[0][lane] = a;
      c[1][lane] = static_cast<uint32_t>(p1);
      c[2][lane] = b;
      c[3][lane] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
}

// One row of consecutive global elements from `start` on.
template <typename T>
void mask_row(const MaskRule& rule, uint64_t high, int64_t start, int64_t length, const T* in, T* out) {
  LaneWords words{};
  for (int64_t done = 0; done < length;) {
    const int64_t element = start + done;
    const int64_t skip = element % 4;  // a row may begin inside a block
    philox_lanes(rule.stream, high, static_cast<uint64_t>(element / 4), words);
    const int64_t count = std::min(kChunk - skip, length - done);
    for (int64_t i = 0; i < count; ++i) {
      const auto place = static_cast<size_t>(skip + i);
      const bool keep = words[place % 4][place / 4] >= rule.threshold;
      out[done + i] = keep ? static_cast<T>(static_cast<float>(in[done + i]) * rule.scale) : static_cast<T>(0);
    }
    done += count;
  }
}

template <>
void mask_row<double>(const MaskRule& rule, uint64_t high, int64_t start, int64_t length, const double* in, double* out) {
  const double scale = 1.0 / (1.0 - static_cast<double>(rule.threshold) * 0x1.0p-32);
  for (int64_t i = 0; i < length; ++i) {
    const auto element = static_cast<uint64_t>(start + i);
    out[i] = philox(rule.stream, high, element / 4)[element % 4] >= rule.threshold ? in[i] * scale : 0.0;
  }
}

template <typename T>
void mask_rows(const MaskLayout& layout, const MaskRule& rule, int64_t step, const int64_t* sample, const T* in, T* out) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, layout.row_length));
  at::parallel_for(0, layout.num_samples * layout.rows_per_sample, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const uint64_t high = mask_counter(step, sample[row / layout.rows_per_sample]);
      const int64_t first = row * layout.row_length;
      mask_row(rule, high, row_start(layout, row % layout.rows_per_sample), layout.row_length, in + first, out + first);
    }
  });
}

}  // namespace

MaskLayout mask_layout(const at::Tensor& x, at::IntArrayRef global_shape, at::IntArrayRef offset) {
  const int64_t inner = x.dim() - 1;
  const auto fits = [&](at::IntArrayRef lengths) { return lengths.empty() || static_cast<int64_t>(lengths.size()) == inner; };
  WELKIN_CHECK(inner <= kMaxMaskDims && fits(global_shape) && fits(offset), "a mask window names every dim but the first");
  MaskLayout layout;
  layout.num_samples = x.size(0);
  layout.row_length = inner > 0 ? x.size(inner) : 1;
  layout.num_row_dims = static_cast<int32_t>(std::max<int64_t>(0, inner - 1));
  int64_t stride = 1;
  for (int64_t d = inner - 1; d >= 0; --d) {
    const auto place = static_cast<size_t>(d);
    const int64_t local = x.size(d + 1);
    layout.first_element += stride * (offset.empty() ? 0 : offset[place]);
    if (d < layout.num_row_dims) {
      layout.row_sizes[d] = local;
      layout.row_strides[d] = stride;
      layout.rows_per_sample *= local;
    }
    stride *= global_shape.empty() ? local : global_shape[place];
  }
  return layout;
}

at::Tensor philox_dropout_cpu(const at::Tensor& x, const at::Tensor& step, const at::Tensor& sample, int64_t stream, double rate,
                              at::IntArrayRef global_shape, at::IntArrayRef offset) {
  const at::Tensor in = x.contiguous();
  const at::Tensor numbers = sample.contiguous();
  at::Tensor out = at::empty_like(in);
  if (in.numel() == 0) return out;
  const MaskLayout layout = mask_layout(in, global_shape, offset);
  const MaskRule rule = mask_rule(static_cast<uint64_t>(stream), rate);
  const int64_t now = step.item<int64_t>();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, in.scalar_type(), "philox_dropout", [&] {
    mask_rows(layout, rule, now, numbers.const_data_ptr<int64_t>(), in.const_data_ptr<scalar_t>(),
              out.mutable_data_ptr<scalar_t>());
  });
  return out;
}

}  // namespace welkin::ops
