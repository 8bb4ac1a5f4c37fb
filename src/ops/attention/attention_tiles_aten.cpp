// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_tiles_aten.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/base/once_differentiable.h"

namespace welkin::ops {
namespace {

// Queries whose weights exist at one time. A constant, so that results do not depend on free memory; 8 heads of 16200 tokens
// take 66 MB.
constexpr int64_t kTileQueries = 128;

// Attention weights, one tile of queries at a time. T queries of a tile, N queries, M keys, G = batch times heads.
class WeightTiles {
 public:
  WeightTiles(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, double rate, MaskKey key, MaskWindow window)
      : batch_(q_BHND.size(0)),
        heads_(q_BHND.size(1)),
        scale_(1.0 / std::sqrt(static_cast<double>(q_BHND.size(3)))),
        q_(flat(q_BHND).mul(scale_)),
        k_(flat(k_BHMD)),
        rate_(rate),
        key_(std::move(key)),
        window_(std::move(window)) {
    if (window_.global_shape.empty()) window_.global_shape = {heads_, queries(), k_.size(1)};
    if (window_.offset.empty()) window_.offset = {0, 0, 0};
  }

  static at::Tensor flat(const at::Tensor& x) { return x.contiguous().flatten(0, 1); }

  int64_t queries() const { return q_.size(1); }
  int64_t groups() const { return q_.size(0); }
  double scale() const { return scale_; }
  at::Tensor scaled_queries(int64_t first, int64_t count) const { return q_.narrow(1, first, count); }
  const at::Tensor& keys() const { return k_; }

  // (G, T, M), at least float32, since thousands of keys are summed.
  at::Tensor weights(int64_t first, int64_t count) const {
    const at::Tensor logits = at::bmm(scaled_queries(first, count), k_.transpose(1, 2));
    return at::softmax(logits, -1, logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  }

  // Applies the mask of these queries to (G, T, M): linear and diagonal, so it serves values and gradients alike.
  at::Tensor masked(const at::Tensor& x_GTM, int64_t first) const {
    MaskWindow tile = window_;
    tile.offset[1] += first;
    return philox_dropout(x_GTM.unflatten(0, {batch_, heads_}), rate_, key_, tile).flatten(0, 1);
  }

  template <typename Body>
  void for_each(Body&& body) const {
    for (int64_t first = 0; first < queries(); first += kTileQueries) body(first, std::min(kTileQueries, queries() - first));
  }

 private:
  int64_t batch_, heads_;
  double scale_;
  at::Tensor q_, k_;  // (G, N, D) scaled, (G, M, D)
  double rate_;
  MaskKey key_;
  MaskWindow window_;
};

at::Tensor mix(const WeightTiles& tiles, const at::Tensor& v_BHMD) {
  const at::Tensor v_GMD = WeightTiles::flat(v_BHMD);
  const at::Tensor out_GND = at::empty({tiles.groups(), tiles.queries(), v_GMD.size(2)}, v_GMD.options());
  tiles.for_each([&](int64_t first, int64_t count) {
    const at::Tensor kept = tiles.masked(tiles.weights(first, count), first).to(v_GMD.scalar_type());
    out_GND.narrow(1, first, count).copy_(at::bmm(kept, v_GMD));
  });
  return out_GND.unflatten(0, {v_BHMD.size(0), v_BHMD.size(1)});
}

struct HeadGradients {
  at::Tensor q, k, v;  // (G, tokens, D)
};

// Recomputes the weights tile by tile. Gradients of keys and values sum over all tiles, so they are at least float32, whatever
// the type of the matmuls.
HeadGradients mix_backward(const WeightTiles& tiles, const at::Tensor& v_BHMD, const at::Tensor& gradient) {
  const at::Tensor v_GMD = WeightTiles::flat(v_BHMD);
  const at::Tensor out_GND = WeightTiles::flat(gradient).to(v_GMD.scalar_type());
  const auto wide = v_GMD.options().dtype(v_GMD.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  HeadGradients sum{.q = at::empty({tiles.groups(), tiles.queries(), tiles.keys().size(2)}, v_GMD.options()),
                    .k = at::zeros(tiles.keys().sizes(), wide),
                    .v = at::zeros(v_GMD.sizes(), wide)};
  tiles.for_each([&](int64_t first, int64_t count) {
    const at::Tensor weights = tiles.weights(first, count);
    const at::Tensor out = out_GND.narrow(1, first, count);
    sum.v.add_(at::bmm(tiles.masked(weights, first).to(out.scalar_type()).transpose(1, 2), out));
    const at::Tensor of_weights = tiles.masked(at::bmm(out, v_GMD.transpose(1, 2)).to(weights.scalar_type()), first);
    const at::Tensor of_logits = at::_softmax_backward_data(of_weights, weights, -1, weights.scalar_type()).to(out.scalar_type());
    sum.q.narrow(1, first, count).copy_(at::bmm(of_logits, tiles.keys()).mul_(tiles.scale()));
    sum.k.add_(at::bmm(of_logits.transpose(1, 2), tiles.scaled_queries(first, count)));
  });
  return sum;
}

struct DroppedAttention : torch::autograd::Function<DroppedAttention> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, double rate, const MaskKey& key, const MaskWindow& window) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({q, k, v, key.step, key.sample});
    context->saved_data["stream"] = static_cast<int64_t>(key.stream);
    context->saved_data["rate"] = rate;
    context->saved_data["global_shape"] = window.global_shape;
    context->saved_data["offset"] = window.offset;
    return mix(WeightTiles(q, k, rate, key, window), v);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    once_differentiable("attention with dropout");
    const at::NoGradGuard no_grad;
    const auto saved = context->get_saved_variables();
    const MaskKey key{static_cast<uint64_t>(context->saved_data["stream"].toInt()), saved[3], saved[4]};
    const MaskWindow window{context->saved_data["global_shape"].toIntVector(), context->saved_data["offset"].toIntVector()};
    const WeightTiles tiles(saved[0], saved[1], context->saved_data["rate"].toDouble(), key, window);
    const HeadGradients sums = mix_backward(tiles, saved[2], grads[0]);
    const auto like = [](const at::Tensor& gradient, const at::Tensor& x) {
      return gradient.to(x.scalar_type()).view(x.sizes());
    };
    return {like(sums.q, saved[0]), like(sums.k, saved[1]), like(sums.v, saved[2]), {}, {}, {}};
  }
};

}  // namespace

at::Tensor attention_in_tiles(const at::Tensor& q_BHND, const at::Tensor& k_BHMD, const at::Tensor& v_BHMD, double rate,
                              const MaskKey& key, const MaskWindow& window) {
  return DroppedAttention::apply(q_BHND, k_BHMD, v_BHMD, rate, key, window);
}

}  // namespace welkin::ops
