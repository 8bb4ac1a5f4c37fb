// SPDX-License-Identifier: Apache-2.0
// Packing of heads for the tiles, and how their work is shared out: by heads and query blocks forward, by heads and ranges of
// keys backward. Both divisions follow from the shapes alone.
#include "ops/attention_cpu.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/cpu/attention_kernel.h"

namespace welkin::ops {
namespace {

constexpr int64_t kBackwardTasks = 64;           // enough for many cores, if the sequence is long enough
constexpr int64_t kKeysPerTask = 5 * kKeyBlock;  // at least
constexpr double kLn2 = 0.693147180559945309417;

int64_t padded_to(int64_t length, int64_t multiple) { return (length + multiple - 1) / multiple * multiple; }

struct AttentionSizes {
  int64_t batch, heads, queries, keys, head_dim;
  int64_t padded_queries, padded_keys, padded_dim;

  int64_t num_heads() const { return batch * heads; }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(head_dim)); }
};

AttentionSizes sizes_of(const at::Tensor& q, const at::Tensor& k) {
  return {q.size(0),
          q.size(1),
          q.size(2),
          k.size(2),
          q.size(3),
          padded_to(q.size(2), kQueryBlock),
          padded_to(k.size(2), kKeyMultiple),
          padded_to(q.size(3), kDimMultiple)};
}

at::Tensor float_buffer(at::IntArrayRef shape) { return at::empty(shape, at::kFloat); }

// A head of (B, H, rows, head_dim) with any strides but a dense last dim.
struct HeadView {
  const at::Tensor& tensor;
  int64_t offset;  // elements
  int64_t row_stride;

  HeadView(const at::Tensor& x, int64_t head)
      : tensor(x), offset(head / x.size(1) * x.stride(0) + head % x.size(1) * x.stride(1)), row_stride(x.stride(2)) {}
};

at::Tensor with_dense_rows(const at::Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); }

// Rows [begin, begin + count) of a head as packed rows times `factor`; zero from the last row on.
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

// All rows of a head as panels (row / panel, head_dim, row % panel).
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

// Packed rows times `factor` into rows [begin, begin + count) of a head of a (B, rows, H, head_dim) tensor.
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

at::Tensor empty_heads(const at::Tensor& like_BHND) {
  return at::empty({like_BHND.size(0), like_BHND.size(2), like_BHND.size(1), like_BHND.size(3)}, like_BHND.options());
}

struct alignas(64) AttentionScratch {
  std::array<float, kAttentionScratch> floats;
};

// Each thread keeps one: 74 kB.
float* scratch() {
  static thread_local AttentionScratch buffer;
  return buffer.floats.data();
}

struct PackedHeads {
  const AttentionSizes& sizes;
  at::Tensor key_rows, key_panels, value_rows, value_panels;  // (heads, padded_keys, ...)

  PackedKeys of(int64_t head) const {
    const auto at_head = [&](const at::Tensor& x, int64_t row) {
      return x.defined() ? x.const_data_ptr<float>() + head * sizes.padded_keys * row : nullptr;
    };
    return {at_head(key_rows, sizes.padded_dim),
            at_head(key_panels, sizes.head_dim),
            at_head(value_rows, sizes.padded_dim),
            at_head(value_panels, sizes.head_dim),
            sizes.keys,
            sizes.head_dim,
            sizes.padded_dim};
  }
};

at::Tensor rows_of(const at::Tensor& x, int64_t num_heads, int64_t padded_rows, int64_t padded_dim, float factor) {
  at::Tensor rows = float_buffer({num_heads, padded_rows, padded_dim});
  float* to = rows.mutable_data_ptr<float>();
  at::parallel_for(0, num_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      pack_rows(HeadView(x, head), 0, padded_rows, padded_dim, factor, to + head * padded_rows * padded_dim);
    }
  });
  return rows;
}

at::Tensor panels_of(const at::Tensor& x, const AttentionSizes& sizes, int64_t panel) {
  at::Tensor panels = float_buffer({sizes.num_heads(), sizes.padded_keys, sizes.head_dim});
  float* to = panels.mutable_data_ptr<float>();
  at::parallel_for(0, sizes.num_heads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      pack_panels(HeadView(x, head), sizes.padded_keys, panel, to + head * sizes.padded_keys * sizes.head_dim);
    }
  });
  return panels;
}

// (heads, padded_queries): the value of `x_BHN`, zero behind the last query.
at::Tensor padded_per_query(const at::Tensor& x_BHN, const AttentionSizes& sizes) {
  at::Tensor padded = at::zeros({sizes.num_heads(), sizes.padded_queries}, at::kFloat);
  padded.narrow(1, 0, sizes.queries).copy_(x_BHN.reshape({sizes.num_heads(), sizes.queries}));
  return padded;
}

}  // namespace

bool attention_cpu_takes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto fits = [&](const at::Tensor& x) {
    return x.dim() == 4 && x.device().is_cpu() && x.scalar_type() == q.scalar_type() && x.numel() > 0 && x.size(0) == q.size(0) &&
           x.size(1) == q.size(1) && x.size(3) == q.size(3);
  };
  const bool narrow = q.scalar_type() == at::kFloat || q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf;
  return narrow && fits(q) && fits(k) && fits(v) && k.size(2) == v.size(2);
}

std::tuple<at::Tensor, at::Tensor> attention_cpu_forward(const at::Tensor& q_in, const at::Tensor& k_in, const at::Tensor& v_in) {
  const AttentionKernel& kernel = attention_kernel(instruction_set());
  const at::Tensor q = with_dense_rows(q_in);
  const at::Tensor k = with_dense_rows(k_in);
  const at::Tensor v = with_dense_rows(v_in);
  const AttentionSizes sizes = sizes_of(q, k);
  const PackedHeads packed{sizes,
                           {},
                           panels_of(k, sizes, kernel.panel_keys),
                           rows_of(v, sizes.num_heads(), sizes.padded_keys, sizes.padded_dim, 1.0F),
                           {}};
  at::Tensor out = empty_heads(q);
  at::Tensor log2_sum = float_buffer({sizes.batch, sizes.heads, sizes.queries});
  float* sums = log2_sum.mutable_data_ptr<float>();
  const auto query_factor = static_cast<float>(sizes.scale() / kLn2);
  const int64_t blocks = sizes.padded_queries / kQueryBlock;
  at::parallel_for(0, sizes.num_heads() * blocks, 1, [&](int64_t first, int64_t last) {
    const at::Tensor rows = float_buffer({2, kQueryBlock, sizes.padded_dim});
    float* query = rows.mutable_data_ptr<float>();
    float* mixed = query + kQueryBlock * sizes.padded_dim;
    std::array<float, kQueryBlock> block_sums{};
    for (int64_t task = first; task < last; ++task) {
      const int64_t head = task / blocks;
      const int64_t begin = task % blocks * kQueryBlock;
      pack_rows(HeadView(q, head), begin, kQueryBlock, sizes.padded_dim, query_factor, query);
      kernel.forward({packed.of(head), query, mixed, block_sums.data()}, scratch());
      unpack_rows(mixed, sizes.padded_dim, 1.0F, begin, kQueryBlock, out, head);
      std::copy_n(block_sums.data(), std::min(kQueryBlock, sizes.queries - begin), sums + head * sizes.queries + begin);
    }
  });
  return {out.transpose(1, 2), log2_sum};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_cpu_backward(const at::Tensor& grad_in, const at::Tensor& q_in,
                                                                      const at::Tensor& k_in, const at::Tensor& v_in,
                                                                      const at::Tensor& out, const at::Tensor& log2_sum) {
  const AttentionKernel& kernel = attention_kernel(instruction_set());
  const at::Tensor q = with_dense_rows(q_in);
  const at::Tensor k = with_dense_rows(k_in);
  const at::Tensor v = with_dense_rows(v_in);
  const at::Tensor grad = with_dense_rows(grad_in);
  const AttentionSizes sizes = sizes_of(q, k);
  const int64_t heads = sizes.num_heads();
  const PackedHeads packed{sizes,
                           rows_of(k, heads, sizes.padded_keys, sizes.padded_dim, 1.0F),
                           panels_of(k, sizes, kernel.panel_keys),
                           {},
                           panels_of(v, sizes, kernel.panel_keys)};
  const at::Tensor queries = rows_of(q, heads, sizes.padded_queries, sizes.padded_dim, static_cast<float>(sizes.scale() / kLn2));
  const at::Tensor grads = rows_of(grad, heads, sizes.padded_queries, sizes.padded_dim, 1.0F);
  const at::Tensor sums = padded_per_query(log2_sum, sizes);
  const at::Tensor means = padded_per_query(out.to(at::kFloat).mul(grad.to(at::kFloat)).sum(-1), sizes);

  // Ranges of keys, each with a sum of its own for the gradient by the queries, added in order afterwards.
  const int64_t wanted = std::min((kBackwardTasks + heads - 1) / heads, (sizes.keys + kKeysPerTask - 1) / kKeysPerTask);
  const int64_t range = padded_to((sizes.keys + wanted - 1) / wanted, kKeyBlock);
  const int64_t ranges = (sizes.keys + range - 1) / range;
  const at::Tensor grad_queries = at::zeros({ranges, heads, sizes.padded_queries, sizes.padded_dim}, at::kFloat);
  const at::Tensor grad_keys = float_buffer({heads, sizes.padded_keys, sizes.padded_dim});
  const at::Tensor grad_values = float_buffer({heads, sizes.padded_keys, sizes.padded_dim});
  const int64_t query_floats = sizes.padded_queries * sizes.padded_dim;
  const int64_t key_floats = sizes.padded_keys * sizes.padded_dim;
  at::parallel_for(0, heads * ranges, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t head = task / ranges;
      const int64_t begin = task % ranges * range;
      kernel.backward(
          {packed.of(head), begin, std::min(begin + range, sizes.keys), sizes.padded_queries,
           queries.const_data_ptr<float>() + head * query_floats, grads.const_data_ptr<float>() + head * query_floats,
           sums.const_data_ptr<float>() + head * sizes.padded_queries,
           means.const_data_ptr<float>() + head * sizes.padded_queries,
           grad_queries.mutable_data_ptr<float>() + (task % ranges * heads + head) * query_floats,
           grad_keys.mutable_data_ptr<float>() + head * key_floats, grad_values.mutable_data_ptr<float>() + head * key_floats},
          scratch());
    }
  });

  at::Tensor grad_q = empty_heads(q);
  at::Tensor grad_k = empty_heads(k);
  at::Tensor grad_v = empty_heads(v);
  const at::Tensor grad_query = ranges == 1 ? grad_queries.select(0, 0) : grad_queries.sum(0);
  at::parallel_for(0, heads, 1, [&](int64_t first, int64_t last) {
    for (int64_t head = first; head < last; ++head) {
      unpack_rows(grad_query.const_data_ptr<float>() + head * query_floats, sizes.padded_dim, static_cast<float>(sizes.scale()),
                  0, sizes.queries, grad_q, head);
      unpack_rows(grad_keys.const_data_ptr<float>() + head * key_floats, sizes.padded_dim, static_cast<float>(kLn2), 0,
                  sizes.keys, grad_k, head);
      unpack_rows(grad_values.const_data_ptr<float>() + head * key_floats, sizes.padded_dim, 1.0F, 0, sizes.keys, grad_v, head);
    }
  });
  return {grad_q.transpose(1, 2), grad_k.transpose(1, 2), grad_v.transpose(1, 2)};
}

}  // namespace welkin::ops
