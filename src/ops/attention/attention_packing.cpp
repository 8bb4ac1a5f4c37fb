// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_packing.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace welkin::ops::attention_detail {
namespace {

const Bf16* bf16_rows(const HeadView& head) { return static_cast<const Bf16*>(head.tensor.const_data_ptr()) + head.offset; }

// Writes one 32-bit number: the compiler would not vectorise two 16-bit stores.
void write_pair(Bf16 low, Bf16 high, Bf16* to) {
  const uint32_t pair = uint32_t{low.bits} | uint32_t{high.bits} << 16U;
  std::memcpy(to, &pair, sizeof(pair));
}

void write_pairs(const Bf16* low, const Bf16* high, int64_t count, Bf16* to) {
  for (int64_t i = 0; i < count; ++i) write_pair(low[i], high[i], to + 2 * i);
}

// Uses integer arithmetic, which the compiler vectorises.
void round_row(const float* __restrict from, float factor, int64_t count, Bf16* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = rounded_to<Bf16>(from[i] * factor);
}

// Replaces infinity by the largest finite number: an infinite large part would leave no small one.
Bf16 finite(Bf16 x) {
  constexpr uint16_t kSize = 0x7FFF, kInfinity = 0x7F80;
  return {static_cast<uint16_t>(x.bits - ((x.bits & kSize) == kInfinity ? 1 : 0))};
}

void split_row(const float* __restrict from, int64_t count, Bf16* __restrict large, Bf16* __restrict small) {
  for (int64_t i = 0; i < count; ++i) {
    large[i] = finite(rounded_to<Bf16>(from[i]));
    small[i] = rounded_to<Bf16>(from[i] - to_float(large[i]));
  }
}

constexpr int64_t kRowsPerTask = 1024;  // at least

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

void pack_panels(const HeadView& head, int64_t padded_rows, int64_t /*panel_dim*/, int64_t panel, float* to) {
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

void pack_steps(const HeadView& head, int64_t padded_rows, int64_t padded_dim, int64_t distance, Bf16* to) {
  const int64_t rows = head.tensor.size(2);
  const int64_t dim = head.tensor.size(3);
  for (int64_t pair = 0; pair < padded_rows / 2; ++pair, to += 2 * padded_dim) {
    const int64_t r = pair / distance * 2 * distance + pair % distance;
    const Bf16* from = bf16_rows(head) + r * head.row_stride;
    int64_t filled = 0;
    if (r + distance < rows) {
      write_pairs(from, from + distance * head.row_stride, dim, to);
      filled = dim;
    } else if (r < rows) {
      for (; filled < dim; ++filled) write_pair(from[filled], Bf16{}, to + 2 * filled);
    }
    std::fill(to + 2 * filled, to + 2 * padded_dim, Bf16{});
  }
}

void pack_panels(const HeadView& head, int64_t padded_rows, int64_t panel_dim, int64_t panel, Bf16* to) {
  const int64_t rows = head.tensor.size(2);
  const int64_t dim = head.tensor.size(3);
  for (int64_t begin = 0; begin < padded_rows; begin += panel, to += panel * panel_dim) {
    const int64_t filled = std::clamp<int64_t>(rows - begin, 0, panel);
    if (filled < panel) std::fill(to, to + panel * panel_dim, Bf16{});
    for (int64_t r = 0; r < filled; ++r) {
      const Bf16* from = bf16_rows(head) + (begin + r) * head.row_stride;
      Bf16* column = to + 2 * r;
      for (int64_t d = 0; d + 1 < dim; d += 2) std::memcpy(column + d * panel, from + d, 2 * sizeof(Bf16));
      if (dim % 2 != 0) write_pair(from[dim - 1], Bf16{}, column + (dim - 1) * panel);
    }
    std::fill(to + padded_to(dim, 2) * panel, to + panel_dim * panel, Bf16{});
  }
}

void unpack_rows(const float* from, int64_t padded_dim, float factor, int64_t begin, int64_t count, at::Tensor& to_BNHD,
                 int64_t head) {
  const int64_t heads = to_BNHD.size(2);
  const int64_t dim = to_BNHD.size(3);
  const int64_t end = std::min(begin + count, to_BNHD.size(1));
  if (to_BNHD.scalar_type() == at::kBFloat16) {
    Bf16* to = static_cast<Bf16*>(to_BNHD.mutable_data_ptr()) + head / heads * to_BNHD.stride(0) + head % heads * dim;
    for (int64_t r = begin; r < end; ++r, from += padded_dim) round_row(from, factor, dim, to + r * heads * dim);
    return;
  }
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, to_BNHD.scalar_type(), "unpack_rows", [&] {
    scalar_t* to = to_BNHD.mutable_data_ptr<scalar_t>() + head / heads * to_BNHD.stride(0) + head % heads * dim;
    for (int64_t r = begin; r < end; ++r, from += padded_dim) {
      for (int64_t d = 0; d < dim; ++d) to[r * heads * dim + d] = static_cast<scalar_t>(from[d] * factor);
    }
  });
}

at::Tensor joined_parts(const at::Tensor& x_BHND, bool left) {
  const at::Tensor rows_BNHD = x_BHND.transpose(1, 2).contiguous();
  const int64_t dim = rows_BNHD.size(3);
  const at::Tensor joined = at::empty({rows_BNHD.size(0), rows_BNHD.size(1), rows_BNHD.size(2), 3 * dim}, at::kBFloat16);
  const float* from = rows_BNHD.const_data_ptr<float>();
  auto* to = static_cast<Bf16*>(joined.mutable_data_ptr());
  const int64_t rows = rows_BNHD.numel() / dim;
  at::parallel_for(0, rows, kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      Bf16* large = to + r * 3 * dim;
      split_row(from + r * dim, dim, large, large + (left ? 2 : 1) * dim);
      std::copy_n(large, dim, large + (left ? 1 : 2) * dim);
    }
  });
  return joined.transpose(1, 2);
}

// Uses eight sums, one or two vectors: with one sum every addition would wait for the previous one.
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
