// SPDX-License-Identifier: Apache-2.0
#include "ops/attention_packing.h"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <array>

namespace welkin::ops::attention_detail {
namespace {

const Bf16* bf16_rows(const HeadView& head) { return static_cast<const Bf16*>(head.tensor.const_data_ptr()) + head.offset; }

}  // namespace

void pack_rows(const HeadView& head, int64_t begin, int64_t count, int64_t padded_dim, float factor, float* to) {
  const int64_t rows = head.tensor.size(2);
  const int64_t dim = head.tensor.size(3);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, head.tensor.scalar_type(), "pack_rows", [&] {
    const scalar_t* from = head.tensor.const_data_ptr<scalar_t>() + head.offset;
    for (int64_t r = begin; r < begin + count; ++r, to += padded_dim) {
      const int64_t filled = r < rows ? dim : 0;
      for (int64_t d = 0; d < filled; ++d) to[d] = static_cast<float>(from[r * head.row_stride + d]) * factor;
      std::fill(to + filled, to + padded_dim, 0.0F);
    }
  });
}

void pack_panels(const HeadView& head, int64_t padded_rows, int64_t panel, float* to) {
  const int64_t rows = head.tensor.size(2);
  const int64_t dim = head.tensor.size(3);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, head.tensor.scalar_type(), "pack_panels", [&] {
    const scalar_t* from = head.tensor.const_data_ptr<scalar_t>() + head.offset;
    for (int64_t begin = 0; begin < padded_rows; begin += panel, to += panel * dim) {
      const int64_t filled = std::clamp<int64_t>(rows - begin, 0, panel);
      for (int64_t d = 0; d < dim; ++d) {
        for (int64_t r = 0; r < filled; ++r) to[d * panel + r] = static_cast<float>(from[(begin + r) * head.row_stride + d]);
        std::fill(to + d * panel + filled, to + (d + 1) * panel, 0.0F);
      }
    }
  });
}

void pack_rows(const HeadView& head, int64_t begin, int64_t count, int64_t padded_dim, float /*factor*/, Bf16* to) {
  const int64_t dim = head.tensor.size(3);
  for (int64_t r = begin; r < begin + count; ++r, to += padded_dim) {
    const int64_t filled = r < head.tensor.size(2) ? dim : 0;
    std::copy_n(bf16_rows(head) + r * head.row_stride, filled, to);
    std::fill(to + filled, to + padded_dim, Bf16{});
  }
}

void pack_steps(const HeadView& head, int64_t padded_rows, int64_t padded_dim, Bf16* to) {
  const int64_t rows = head.tensor.size(2);
  const int64_t dim = head.tensor.size(3);
  for (int64_t r = 0; r < padded_rows; r += 2, to += 2 * padded_dim) {
    const Bf16* from = bf16_rows(head) + r * head.row_stride;
    for (int64_t d = 0; d < padded_dim; ++d) {
      to[2 * d] = r < rows && d < dim ? from[d] : Bf16{};
      to[2 * d + 1] = r + 1 < rows && d < dim ? from[head.row_stride + d] : Bf16{};
    }
  }
}

void pack_panels(const HeadView& head, int64_t padded_rows, int64_t panel, Bf16* to) {
  const int64_t rows = head.tensor.size(2);
  const int64_t dim = head.tensor.size(3);
  const int64_t panel_dim = padded_to(dim, 2);
  for (int64_t begin = 0; begin < padded_rows; begin += panel, to += panel * panel_dim) {
    for (int64_t r = 0; r < panel; ++r) {
      const Bf16* from = bf16_rows(head) + (begin + r) * head.row_stride;
      for (int64_t d = 0; d < panel_dim; ++d) {
        to[d / 2 * 2 * panel + 2 * r + d % 2] = begin + r < rows && d < dim ? from[d] : Bf16{};
      }
    }
  }
}

void unpack_rows(const float* from, int64_t padded_dim, float factor, int64_t begin, int64_t count, at::Tensor& to_BNHD,
                 int64_t head) {
  const int64_t heads = to_BNHD.size(2);
  const int64_t dim = to_BNHD.size(3);
  const int64_t end = std::min(begin + count, to_BNHD.size(1));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, to_BNHD.scalar_type(), "unpack_rows", [&] {
    scalar_t* to = to_BNHD.mutable_data_ptr<scalar_t>() + head / heads * to_BNHD.stride(0) + head % heads * dim;
    for (int64_t r = begin; r < end; ++r, from += padded_dim) {
      for (int64_t d = 0; d < dim; ++d) to[r * heads * dim + d] = static_cast<scalar_t>(from[d] * factor);
    }
  });
}

// In eight sums, which are one vector or two: of one sum every addition would wait for the one before.
void dot_rows(const HeadView& a, const HeadView& b, float* to) {
  constexpr size_t kSums = 8;
  const int64_t rows = a.tensor.size(2);
  const auto dim = static_cast<size_t>(a.tensor.size(3));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, a.tensor.scalar_type(), "dot_rows", [&] {
    const scalar_t* left = a.tensor.const_data_ptr<scalar_t>() + a.offset;
    const scalar_t* right = b.tensor.const_data_ptr<scalar_t>() + b.offset;
    for (int64_t r = 0; r < rows; ++r, left += a.row_stride, right += b.row_stride) {
      std::array<float, kSums> sums{};
      const auto add = [&](size_t sum, size_t d) { sums[sum] += static_cast<float>(left[d]) * static_cast<float>(right[d]); };
      size_t d = 0;
      for (; d + kSums <= dim; d += kSums) {
        for (size_t i = 0; i < kSums; ++i) add(i, d + i);
      }
      for (size_t i = 0; d + i < dim; ++i) add(i, d + i);
      for (size_t width = kSums / 2; width > 0; width /= 2) {
        for (size_t i = 0; i < width; ++i) sums[i] += sums[i + width];
      }
      to[r] = sums[0];
    }
  });
}

}  // namespace welkin::ops::attention_detail
