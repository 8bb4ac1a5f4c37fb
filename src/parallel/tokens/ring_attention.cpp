// SPDX-License-Identifier: Apache-2.0
// Keys and values go round the ring while each member works on its current block. In the backward pass their gradients go
// with them and arrive home after a full turn.
#include "parallel/tokens/ring_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "ops/attention/attention_block.h"
#include "ops/base/once_differentiable.h"
#include "parallel/shard/split.h"
#include "parallel/tokens/context_attention.h"

namespace welkin::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// This member's position in the ring, and the owner of its block after `step` turns.
class Ring {
 public:
  Ring(const Group& group, const Lengths& lengths) : group_(group), lengths_(lengths) {}

  int64_t size() const { return group_.size(); }
  const Lengths& lengths() const { return lengths_; }
  int64_t owner(int64_t step) const { return (group_.group_rank() + size() - step % size()) % size(); }

  // A running exchange: sends `block` (2, B, H, tokens, D) to the next member and receives the previous one's as `arriving`.
  struct Turn {
    at::Tensor leaving, arriving;
    Transfer transfer;
    at::Tensor finish() {
      transfer.wait();
      return arriving;
    }
  };
  Turn start_turn(const at::Tensor& block, int64_t next_owner) const {
    std::vector<int64_t> sizes = block.sizes().vec();
    sizes[3] = lengths_[static_cast<size_t>(next_owner)];
    Turn turn{block.contiguous(), at::empty(sizes, block.options()), {}};
    const int64_t next = (group_.group_rank() + 1) % size(), previous = (group_.group_rank() + size() - 1) % size();
    turn.transfer = start_exchange(group_, {{turn.leaving, next}}, {{turn.arriving, previous}});
    return turn;
  }

 private:
  const Group& group_;
  const Lengths& lengths_;
};

// The masks of the block from `owner`: its keys are at the positions of its tokens.
ops::BlockDropout dropout_of(const RingDropout& dropout, const Lengths& lengths, int64_t owner) {
  ops::BlockDropout block{dropout.rate, dropout.key, dropout.queries};
  block.window.offset.at(2) += split_offset(lengths, owner);
  return block;
}

ops::AttentionBlock ring_forward(const Ring& ring, const at::Tensor& q, at::Tensor kv, const RingDropout& dropout) {
  ops::AttentionBlock whole;
  for (int64_t step = 0; step < ring.size(); ++step) {
    const bool last = step + 1 == ring.size();
    Ring::Turn turn;
    if (!last) turn = ring.start_turn(kv, ring.owner(step + 1));  // in flight while this block is used
    const ops::AttentionBlock block =
        dropout.rate > 0 ? ops::attention_block(q, kv[0], kv[1], dropout_of(dropout, ring.lengths(), ring.owner(step)))
                         : ops::attention_block(q, kv[0], kv[1]);
    whole = step == 0 ? block : ops::merge_attention_blocks(whole, block);
    if (!last) kv = turn.finish();
  }
  return whole;
}

struct RingGradient {
  at::Tensor q, kv;
};

RingGradient ring_backward(const Ring& ring, const at::Tensor& grad_out, const at::Tensor& q, at::Tensor kv,
                           const ops::AttentionBlock& whole, const RingDropout& dropout) {
  const auto wide = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  RingGradient gradient{at::zeros(q.sizes(), q.options().dtype(wide)), at::zeros(kv.sizes(), kv.options().dtype(wide))};
  Ring::Turn sums;  // of the gradients so far, in flight while the next block's are computed
  for (int64_t step = 0; step < ring.size(); ++step) {
    const bool last = step + 1 == ring.size();
    Ring::Turn turn;
    if (!last) turn = ring.start_turn(kv, ring.owner(step + 1));
    const ops::AttentionBlockGradient block =
        dropout.rate > 0 ? ops::attention_block_gradient(grad_out, q, kv[0], kv[1], whole,
                                                         dropout_of(dropout, ring.lengths(), ring.owner(step)))
                         : ops::attention_block_gradient(grad_out, q, kv[0], kv[1], whole);
    gradient.q += block.q;
    if (step > 0) gradient.kv = sums.finish();
    gradient.kv[0] += block.k;
    gradient.kv[1] += block.v;
    if (!last) kv = turn.finish();
    sums = ring.start_turn(gradient.kv, ring.owner(step + 1));
  }
  gradient.kv = sums.finish();
  return gradient;
}

struct RingFunction : torch::autograd::Function<RingFunction> {
  struct Place : torch::CustomClassHolder {
    Place(Group g, Lengths l, RingDropout d) : group(std::move(g)), lengths(std::move(l)), dropout(std::move(d)) {}
    Group group;
    Lengths lengths;
    RingDropout dropout;
  };

  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const c10::intrusive_ptr<Place>& place) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor kv = at::stack({k, v});
    const ops::AttentionBlock whole = ring_forward(Ring(place->group, place->lengths), q, kv, place->dropout);
    at::Tensor out = whole.out.to(q.scalar_type());
    context->save_for_backward({q, kv, out, whole.lse});
    context->saved_data["place"] = c10::IValue::make_capsule(place);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    ops::once_differentiable("ring attention");
    const auto saved = context->get_saved_variables();
    const auto capsule = context->saved_data["place"].toCapsule();
    const auto& place = static_cast<Place&>(*capsule);
    const RingGradient gradient =
        ring_backward(Ring(place.group, place.lengths), grads[0], saved[0], saved[1], {saved[2], saved[3]}, place.dropout);
    const auto dtype = saved[0].scalar_type();
    return {gradient.q.to(dtype), gradient.kv[0].to(dtype), gradient.kv[1].to(dtype), {}};
  }
};

}  // namespace

at::Tensor ring_attention(const Group& group, const Lengths& lengths, const at::Tensor& q_BHND, const at::Tensor& k_BHND,
                          const at::Tensor& v_BHND) {
  return ring_attention(group, lengths, q_BHND, k_BHND, v_BHND, RingDropout{});
}

at::Tensor ring_attention(const Group& group, const Lengths& lengths, const at::Tensor& q_BHND, const at::Tensor& k_BHND,
                          const at::Tensor& v_BHND, const RingDropout& dropout) {
  return RingFunction::apply(q_BHND, k_BHND, v_BHND, c10::make_intrusive<RingFunction::Place>(group, lengths, dropout));
}

}  // namespace welkin::parallel
