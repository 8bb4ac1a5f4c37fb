// SPDX-License-Identifier: Apache-2.0
// Divides the tiles' work: by heads and query blocks forward, by heads and ranges of keys backward. Both divisions
// depend only on the shapes.
#include "ops/attention/attention_cpu.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "core/error.h"
#include "ops/attention/attention_packing.h"
#include "ops/base/aligned_buffer.h"
#include "ops/cpu/attention/attention_kernel.h"
#include "ops/gemm/gemm_provider.h"

namespace welkin::ops {
namespace attention_detail {

constexpr int64_t kBackwardTasks = 64;  // enough for many cores, if the sequence is long enough
constexpr int64_t kKeysPerTask = 960;   // at least
constexpr double kLn2 = 0.693147180559945309417;

struct AttentionSizes {
  int64_t batch, heads, queries, keys, head_dim;
  int64_t padded_queries, padded_keys, padded_dim;
  int64_t panel_dim, row_dim;  // depths of the matmuls of rows and panels
  int64_t key_multiple;        // of padded_keys

  int64_t num_heads() const { return batch * heads; }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(head_dim)); }
};

// `summed`: depth of the matmuls of rows and panels.
template <typename T>
AttentionSizes sizes_of(const at::Tensor& q, const at::Tensor& k, int64_t summed, const AttentionKernel<T>& kernel) {
  const int64_t padded_dim = padded_to(q.size(3), kDimMultiple);
  const int64_t multiple = key_multiple(kernel, padded_dim);
  return {q.size(0),
          q.size(1),
          q.size(2),
          k.size(2),
          q.size(3),
          padded_to(q.size(2), kernel.query_block),
          padded_to(k.size(2), multiple),
          padded_dim,
          padded_to(summed, kernel.depth_multiple),
          padded_to(padded_to(summed, kDimMultiple), kernel.depth_multiple),
          multiple};
}

at::Tensor float_buffer(at::IntArrayRef shape) { return at::empty(shape, at::kFloat); }

// Places the logits' scale. Float32 queries include it, and log2(e); bfloat16 queries would be rounded once more.
template <typename T>
struct LogitScale {
  double scale;
  static constexpr bool kFolded = std::is_same_v<T, float>;

  float of_query() const { return kFolded ? static_cast<float>(scale / kLn2) : 1.0F; }
  float of_matmul() const { return kFolded ? 1.0F : static_cast<float>(scale / kLn2); }
  float of_key_gradient() const { return static_cast<float>(kFolded ? kLn2 : scale); }
};

// Buffers of packed numbers of type T; tensors only provide their memory.
template <typename T>
at::Tensor packed_buffer(at::IntArrayRef shape) {
  return at::empty(shape, std::is_same_v<T, float> ? at::kFloat : at::kBFloat16);
}
template <typename T>
const T* packed_data(const at::Tensor& buffer) {
  return static_cast<const T*>(buffer.const_data_ptr());
}

at::Tensor with_dense_rows(const at::Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); }

// Operands of matmuls. Float32 may be rounded to bfloat16, or split in two parts: the rounded value and the remainder.
struct Operand {
  at::Tensor side;     // for matmuls of rows and panels: with two parts three times the head dim
  at::Tensor large{};  // for matmuls of steps
  at::Tensor small{};  // the second of two parts
};

template <typename T>
Operand operand_of(const at::Tensor& x, bool left) {
  const bool is_narrow = !std::is_same_v<T, float>;
  if (!is_narrow || x.scalar_type() != at::kFloat || float32_parts() != 2) {
    const at::Tensor whole = with_dense_rows(is_narrow ? x.to(at::kBFloat16) : x);
    return {whole, whole};
  }
  const at::Tensor joined = joined_parts(x, left);
  const int64_t dim = x.size(3);
  return {joined, joined.narrow(3, 0, dim), joined.narrow(3, (left ? 2 : 1) * dim, dim)};
}

at::Tensor empty_heads(const at::Tensor& like_BHND) {
  return at::empty({like_BHND.size(0), like_BHND.size(2), like_BHND.size(1), like_BHND.size(3)}, like_BHND.options());
}

// Scratch memory of this thread.
float* scratch(int64_t floats) {
  static thread_local AlignedBuffer<float> buffer;
  return buffer.reserve(floats);
}

template <typename T>
struct PackedHeads {
  const AttentionSizes& sizes;
  at::Tensor key_panels;  // (heads, padded_keys, ...), like all others
  at::Tensor key_steps{}, small_key_steps{};
  at::Tensor value_steps{}, small_value_steps{};
  at::Tensor value_panels{};

  PackedKeys<T> of(int64_t head) const {
    const auto at_head = [&](const at::Tensor& x, int64_t row) {
      return x.defined() ? packed_data<T>(x) + head * sizes.padded_keys * row : nullptr;
    };
    return {at_head(key_steps, sizes.padded_dim),
            at_head(small_key_steps, sizes.padded_dim),
            at_head(key_panels, sizes.panel_dim),
            at_head(value_steps, sizes.padded_dim),
            at_head(small_value_steps, sizes.padded_dim),
            at_head(value_panels, sizes.panel_dim),
            sizes.keys,
            sizes.panel_dim,
            sizes.row_dim,
            sizes.padded_dim,
            sizes.key_multiple};
  }
};

// Calls pack(view, head's memory) for all heads of (heads, floats per head).
template <typename T, typename Pack>
at::Tensor packed_heads(const at::Tensor& x, int64_t num_heads, int64_t per_head, Pack&& pack) {
  at::Tensor all = packed_buffer<T>({num_heads, per_head});
  T* to = static_cast<T*>(all.mutable_data_ptr());
  at::parallel_for(0, num_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) pack(HeadView(x, head), to + head * per_head);
  });
  return all;
}

template <typename T>
at::Tensor rows_of(const at::Tensor& x, int64_t num_heads, int64_t padded_rows, int64_t padded_dim, float factor) {
  return packed_heads<T>(x, num_heads, padded_rows * padded_dim,
                         [&](const HeadView& head, T* to) { pack_rows(head, 0, padded_rows, padded_dim, factor, to); });
}

// Rows as the right side of a matmul; undefined for an undefined tensor.
template <typename T>
at::Tensor steps_of(const at::Tensor& x, int64_t num_heads, int64_t padded_rows, int64_t padded_dim, int64_t pair_distance) {
  if (!x.defined()) return {};
  if constexpr (std::is_same_v<T, float>) {
    return rows_of<T>(x, num_heads, padded_rows, padded_dim, 1.0F);
  } else {
    return packed_heads<T>(x, num_heads, padded_rows * padded_dim,
                           [&](const HeadView& head, T* to) { pack_steps(head, padded_rows, padded_dim, pair_distance, to); });
  }
}

template <typename T>
at::Tensor panels_of(const at::Tensor& x, int64_t num_heads, int64_t padded_rows, int64_t panel_dim, int64_t panel) {
  return packed_heads<T>(x, num_heads, padded_rows * panel_dim,
                         [&](const HeadView& head, T* to) { pack_panels(head, padded_rows, panel_dim, panel, to); });
}

// (heads, padded_queries): per query the sum over the head dim of a times b, zero behind the last.
at::Tensor row_matmuls(const at::Tensor& a, const at::Tensor& b, const AttentionSizes& sizes) {
  at::Tensor matmuls = at::zeros({sizes.num_heads(), sizes.padded_queries}, at::kFloat);
  float* to = matmuls.mutable_data_ptr<float>();
  at::parallel_for(0, sizes.num_heads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      dot_rows(HeadView(a, head), HeadView(b, head), to + head * sizes.padded_queries);
    }
  });
  return matmuls;
}

void add_numbers(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// (heads, padded_queries): the value of `x_BHN`, zero behind the last query.
at::Tensor padded_per_query(const at::Tensor& x_BHN, const AttentionSizes& sizes) {
  at::Tensor padded = at::zeros({sizes.num_heads(), sizes.padded_queries}, at::kFloat);
  padded.narrow(1, 0, sizes.queries).copy_(x_BHN.reshape({sizes.num_heads(), sizes.queries}));
  return padded;
}

// The mask of each head, from that of all heads.
class HeadMasks {
 public:
  HeadMasks(const WeightMask& mask, const AttentionSizes& sizes) : heads_(sizes.heads) {
    if (mask.rate == 0) return;
    rule_ = mask_rule(mask.key.stream, mask.rate);
    step_ = mask.key.step.item<int64_t>();
    sample_ = mask.key.sample.to(at::kLong).contiguous();
    WELKIN_CHECK(sample_.numel() == sizes.batch, "one sample number per element of dim 0");
    const std::vector<int64_t>& global = mask.window.global_shape;
    const std::vector<int64_t>& offset = mask.window.offset;
    WELKIN_CHECK((global.empty() || global.size() == 3) && (offset.empty() || offset.size() == 3),
                 "a window on attention weights is one of heads, queries and keys");
    const auto extent = [&](size_t d, int64_t local) { return global.empty() ? local : global[d]; };
    queries_ = extent(1, sizes.queries);
    keys_ = extent(2, sizes.keys);
    if (!offset.empty()) offset_ = {offset[0], offset[1], offset[2]};
  }

  // The mask of head `head` of (batch, heads), from query `query` on.
  WeightDropout of(int64_t head, int64_t query) const {
    if (!sample_.defined()) return {};
    const int64_t row = (head % heads_ + offset_[0]) * queries_ + query + offset_[1];
    return {rule_, mask_counter(step_, sample_.const_data_ptr<int64_t>()[head / heads_]),
            static_cast<uint64_t>(row * keys_ + offset_[2]), static_cast<uint64_t>(keys_)};
  }

 private:
  int64_t heads_;
  MaskRule rule_;
  int64_t step_ = 0;
  at::Tensor sample_;
  int64_t queries_ = 0, keys_ = 0;  // of all
  std::array<int64_t, 3> offset_{};
};

template <typename T>
std::tuple<at::Tensor, at::Tensor> forward_of(const AttentionKernel<T>& kernel, const at::Tensor& q_in, const at::Tensor& k_in,
                                              const at::Tensor& v_in, const WeightMask& mask) {
  const at::Tensor q = operand_of<T>(q_in, /*left=*/true).side;
  const at::Tensor k = operand_of<T>(k_in, /*left=*/false).side;
  const Operand v = operand_of<T>(v_in, /*left=*/false);
  const AttentionSizes sizes = sizes_of(q_in, k_in, q.size(3), kernel);
  const auto value_steps_of = [&](const at::Tensor& x) {
    return steps_of<T>(x, sizes.num_heads(), sizes.padded_keys, sizes.padded_dim, kernel.pair_distance);
  };
  const PackedHeads<T> packed{
      .sizes = sizes,
      .key_panels = panels_of<T>(k, sizes.num_heads(), sizes.padded_keys, sizes.panel_dim, kernel.panel_rows),
      .value_steps = value_steps_of(v.large),
      .small_value_steps = value_steps_of(v.small)};
  at::Tensor out = empty_heads(q_in);
  at::Tensor log2_sum = float_buffer({sizes.batch, sizes.heads, sizes.queries});
  float* sums = log2_sum.mutable_data_ptr<float>();
  const LogitScale<T> scale{sizes.scale()};
  const HeadMasks masks(mask, sizes);
  const int64_t block = kernel.query_block;
  const int64_t blocks = sizes.padded_queries / block;
  at::parallel_for(0, sizes.num_heads() * blocks, 1, [&](int64_t first, int64_t last) {
    const AlignedBuffer<T> query(block * sizes.row_dim);
    const AlignedBuffer<float> mixed(block * sizes.padded_dim);
    const AlignedBuffer<float> block_sums(block);
    for (int64_t task = first; task < last; ++task) {
      const int64_t head = task / blocks;
      const int64_t begin = task % blocks * block;
      pack_rows(HeadView(q, head), begin, block, sizes.row_dim, scale.of_query(), query.data());
      kernel.forward({packed.of(head), scale.of_matmul(), query.data(), mixed.data(), block_sums.data(), masks.of(head, begin)},
                     scratch(kernel.scratch(sizes.padded_dim)));
      unpack_rows(mixed.data(), sizes.padded_dim, 1.0F, begin, block, out, head);
      std::copy_n(block_sums.data(), std::min(block, sizes.queries - begin), sums + head * sizes.queries + begin);
    }
  });
  return {out.transpose(1, 2), log2_sum};
}

template <typename T>
std::tuple<at::Tensor, at::Tensor, at::Tensor> backward_of(const AttentionKernel<T>& kernel, const at::Tensor& grad_in,
                                                           const at::Tensor& q_in, const at::Tensor& k_in, const at::Tensor& v_in,
                                                           const at::Tensor& out_in, const at::Tensor& log2_sum,
                                                           const WeightMask& mask) {
  const bool keys_left = kernel.keys_on_the_left;
  const Operand q = operand_of<T>(q_in, !keys_left);
  const Operand k = operand_of<T>(k_in, keys_left);
  const Operand v = operand_of<T>(v_in, keys_left);
  const Operand grad = operand_of<T>(grad_in, !keys_left);
  const AttentionSizes sizes = sizes_of(q_in, k_in, q.side.size(3), kernel);
  const int64_t heads = sizes.num_heads();
  const auto side_of = [&](const Operand& x, int64_t padded_rows, bool left, float factor) {
    return left ? rows_of<T>(x.side, heads, padded_rows, sizes.row_dim, factor)
                : panels_of<T>(x.side, heads, padded_rows, sizes.panel_dim, kernel.panel_rows);
  };
  const auto key_side = [&](const Operand& x) { return side_of(x, sizes.padded_keys, keys_left, 1.0F); };
  const auto query_side = [&](const Operand& x, float factor) { return side_of(x, sizes.padded_queries, !keys_left, factor); };
  const auto steps = [&](const at::Tensor& x, int64_t padded_rows) {
    return steps_of<T>(x, heads, padded_rows, sizes.padded_dim, kernel.pair_distance);
  };
  const PackedHeads<T> packed{.sizes = sizes,
                              .key_panels = key_side(k),
                              .key_steps = steps(k.large, sizes.padded_keys),
                              .small_key_steps = steps(k.small, sizes.padded_keys),
                              .value_panels = key_side(v)};
  const LogitScale<T> scale{sizes.scale()};
  const HeadMasks masks(mask, sizes);
  const at::Tensor queries = query_side(q, scale.of_query());
  const at::Tensor grads = query_side(grad, 1.0F);
  const bool pairs = !std::is_same_v<T, float>;
  const at::Tensor query_steps = pairs ? steps(q.large, sizes.padded_queries) : queries;
  const at::Tensor grad_steps = pairs ? steps(grad.large, sizes.padded_queries) : grads;
  const at::Tensor small_query_steps = steps(q.small, sizes.padded_queries);
  const at::Tensor small_grad_steps = steps(grad.small, sizes.padded_queries);
  const at::Tensor sums = padded_per_query(log2_sum, sizes);
  const at::Tensor means = row_matmuls(with_dense_rows(out_in), with_dense_rows(grad_in), sizes);

  // Ranges of keys. Each has its own sum for the query gradient; the sums are added in order afterwards.
  const int64_t wanted = std::min((kBackwardTasks + heads - 1) / heads, (sizes.keys + kKeysPerTask - 1) / kKeysPerTask);
  const int64_t range = padded_to((sizes.keys + wanted - 1) / wanted, kernel.key_block);
  const int64_t ranges = (sizes.keys + range - 1) / range;
  const at::Tensor grad_queries = float_buffer({ranges, heads, sizes.padded_queries, sizes.padded_dim});
  const at::Tensor grad_keys = float_buffer({heads, sizes.padded_keys, sizes.padded_dim});
  const at::Tensor grad_values = float_buffer({heads, sizes.padded_keys, sizes.padded_dim});
  const int64_t query_floats = sizes.padded_queries * sizes.padded_dim;
  const int64_t left_numbers = sizes.padded_queries * sizes.row_dim;
  const int64_t key_floats = sizes.padded_keys * sizes.padded_dim;
  at::parallel_for(0, heads * ranges, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t head = task / ranges;
      const int64_t begin = task % ranges * range;
      const auto steps_at = [&](const at::Tensor& x) { return x.defined() ? packed_data<T>(x) + head * query_floats : nullptr; };
      kernel.backward({packed.of(head), scale.of_matmul(), begin, std::min(begin + range, sizes.keys), sizes.padded_queries,
                       packed_data<T>(queries) + head * left_numbers, steps_at(query_steps), steps_at(small_query_steps),
                       packed_data<T>(grads) + head * left_numbers, steps_at(grad_steps), steps_at(small_grad_steps),
                       sums.const_data_ptr<float>() + head * sizes.padded_queries,
                       means.const_data_ptr<float>() + head * sizes.padded_queries,
                       grad_queries.mutable_data_ptr<float>() + (task % ranges * heads + head) * query_floats,
                       grad_keys.mutable_data_ptr<float>() + head * key_floats,
                       grad_values.mutable_data_ptr<float>() + head * key_floats, masks.of(head, 0)},
                      scratch(kernel.scratch(sizes.padded_dim)));
    }
  });

  at::Tensor grad_q = empty_heads(q_in);
  at::Tensor grad_k = empty_heads(k_in);
  at::Tensor grad_v = empty_heads(v_in);
  at::parallel_for(0, heads, 1, [&](int64_t first, int64_t last) {
    for (int64_t head = first; head < last; ++head) {
      float* sum = grad_queries.mutable_data_ptr<float>() + head * query_floats;
      for (int64_t r = 1; r < ranges; ++r) add_numbers(sum + r * heads * query_floats, query_floats, sum);
      unpack_rows(sum, sizes.padded_dim, static_cast<float>(sizes.scale()), 0, sizes.queries, grad_q, head);
      unpack_rows(grad_keys.const_data_ptr<float>() + head * key_floats, sizes.padded_dim, scale.of_key_gradient(), 0, sizes.keys,
                  grad_k, head);
      unpack_rows(grad_values.const_data_ptr<float>() + head * key_floats, sizes.padded_dim, 1.0F, 0, sizes.keys, grad_v, head);
    }
  });
  return {grad_q.transpose(1, 2), grad_k.transpose(1, 2), grad_v.transpose(1, 2)};
}

// Kernels of bfloat16 for bfloat16 operands, and for float32 ones that are rounded to it or split in two parts; else null.
const AttentionKernel<Bf16>* narrow_kernel(const at::Tensor& q) {
  if (q.scalar_type() == at::kBFloat16) return attention_kernel<Bf16>(instruction_set());
  const int64_t parts = q.scalar_type() == at::kFloat ? float32_parts() : 0;
  const AttentionKernel<Bf16>* kernel = parts > 0 ? attention_kernel<Bf16>(instruction_set()) : nullptr;
  return kernel != nullptr && (parts == 1 || kernel->takes_two_parts) ? kernel : nullptr;
}

}  // namespace attention_detail

using namespace attention_detail;

bool attention_cpu_supports(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto fits = [&](const at::Tensor& x) {
    return x.dim() == 4 && x.device().is_cpu() && x.scalar_type() == q.scalar_type() && x.numel() > 0 && x.size(0) == q.size(0) &&
           x.size(1) == q.size(1) && x.size(3) == q.size(3);
  };
  const bool narrow = q.scalar_type() == at::kFloat || q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf;
  return narrow && fits(q) && fits(k) && fits(v) && k.size(2) == v.size(2);
}

std::tuple<at::Tensor, at::Tensor> attention_cpu_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                         const WeightMask& mask) {
  if (const AttentionKernel<Bf16>* narrow = narrow_kernel(q)) return forward_of<Bf16>(*narrow, q, k, v, mask);
  return forward_of<float>(*attention_kernel<float>(instruction_set()), q, k, v, mask);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_cpu_backward(const at::Tensor& grad, const at::Tensor& q,
                                                                      const at::Tensor& k, const at::Tensor& v,
                                                                      const at::Tensor& out, const at::Tensor& log2_sum,
                                                                      const WeightMask& mask) {
  if (const AttentionKernel<Bf16>* narrow = narrow_kernel(q)) {
    return backward_of<Bf16>(*narrow, grad, q, k, v, out, log2_sum, mask);
  }
  return backward_of<float>(*attention_kernel<float>(instruction_set()), grad, q, k, v, out, log2_sum, mask);
}

}  // namespace welkin::ops
