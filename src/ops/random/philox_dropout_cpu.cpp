// SPDX-License-Identifier: Apache-2.0
// The CPU kernel: factors come from ops/cpu/, types and windows are handled here.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/philox.h"
#include "ops/arithmetic/philox_dropout_kernel.h"
#include "ops/cpu/elementwise/mask_kernel.h"

namespace welkin::ops {
namespace {

constexpr int64_t kChunk = 256;  // elements whose factors are made at once

// One row of consecutive global elements from `start` on. Dropped elements become zero, even if they are not finite.
template <typename T>
void mask_row(const MaskRule& rule, uint64_t counter, int64_t start, int64_t length, const T* in, T* out) {
  const MaskKernel& kernel = mask_kernel(instruction_set());
  alignas(64) std::array<float, kChunk> factors;  // NOLINT(cppcoreguidelines-pro-type-member-init): the kernel fills it
  for (int64_t done = 0; done < length;) {
    const auto element = static_cast<uint64_t>(start + done);
    const int64_t count = std::min(kChunk - static_cast<int64_t>(element % 4), length - done);  // whole blocks after the first
    kernel.factors(rule, counter, element, count, factors.data());
    for (int64_t i = 0; i < count; ++i) {
      const float factor = factors[static_cast<size_t>(i)];
      out[done + i] = factor != 0 ? static_cast<T>(static_cast<float>(in[done + i]) * factor) : static_cast<T>(0);
    }
    done += count;
  }
}

template <>
void mask_row<double>(const MaskRule& rule, uint64_t counter, int64_t start, int64_t length, const double* in, double* out) {
  const double scale = 1.0 / (1.0 - static_cast<double>(rule.threshold) * 0x1.0p-32);
  PhiloxBlock block{};
  for (int64_t i = 0; i < length; ++i) {
    const auto element = static_cast<uint64_t>(start + i);
    if (i == 0 || element % 4 == 0) block = philox(rule.stream, counter, element / 4);
    out[i] = block[element % 4] >= rule.threshold ? in[i] * scale : 0.0;
  }
}

template <typename T>
void mask_rows(const MaskLayout& layout, const MaskRule& rule, int64_t step, const int64_t* sample, const T* in, T* out) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, layout.row_length));
  at::parallel_for(0, layout.num_samples * layout.rows_per_sample, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const uint64_t counter = mask_counter(step, sample[row / layout.rows_per_sample]);
      const int64_t first = row * layout.row_length;
      mask_row(rule, counter, row_start(layout, row % layout.rows_per_sample), layout.row_length, in + first, out + first);
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
