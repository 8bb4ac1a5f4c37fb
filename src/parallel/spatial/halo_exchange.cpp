// SPDX-License-Identifier: Apache-2.0
#include "parallel/spatial/halo_exchange.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "core/error.h"
#include "ops/base/once_differentiable.h"

namespace welkin::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<int64_t> sizes_of(const std::vector<int64_t>& like, const Block& block) {
  const Cells extent = block.extent();
  return {like[0], like[1], extent[0], extent[1], extent[2]};
}

// Calls body(box, tensor, its cells) for all parts of a parcel.
template <typename Metas, typename Body>
void for_cells(const HaloMessage& message, const at::Tensor& cells, const Metas& metas, Body&& body) {
  int64_t offset = 0;
  for (const HaloBox& box : message.boxes) {
    for (size_t i = 0; i < metas.size(); ++i) {
      const std::vector<int64_t> sizes = sizes_of(metas[i].sizes, box.to);
      const int64_t count = c10::multiply_integers(sizes);
      body(box, i, cells.narrow(0, offset, count).view(sizes));
      offset += count;
    }
  }
}

// As autograd's accumulation sees it: no one else has this gradient or its memory, so that it may be changed.
bool is_only_user(const at::Tensor& gradient) {
  return gradient.use_count() == 1 && gradient.storage().use_count() == 1 && gradient.is_non_overlapping_and_dense();
}

at::Tensor over_storage_of(const at::Tensor& values) {
  return at::empty({0}, values.options().requires_grad(false)).set_(values.storage(), 0, values.sizes(), values.strides());
}

}  // namespace

at::Tensor cut(const at::Tensor& values, const Block& whole, const Block& block) {
  at::Tensor part = values;
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    part = part.narrow(kFirstSpaceDim + static_cast<int64_t>(a), block.axes[a].begin - whole.axes[a].begin, block.axes[a].size());
  }
  return part;
}

std::vector<HaloTurn::Parcel> HaloTurn::parcels_for(const std::vector<HaloMessage>& messages) const {
  int64_t per_cell = 0;
  for (const Meta& meta : metas_) per_cell += meta.sizes[0] * meta.sizes[1];
  std::vector<Parcel> parcels;
  for (const HaloMessage& message : messages) {
    parcels.push_back({&message, at::empty({per_cell * message.cells()}, metas_.front().options)});
  }
  return parcels;
}

// Sends nothing if no member needs cells of this one, nor the other way round.
Transfer HaloTurn::send(const std::vector<Parcel>& going, const std::vector<Parcel>& coming) const {
  if (going.empty() && coming.empty()) return {};
  const auto messages = [](const std::vector<Parcel>& parcels) {
    std::vector<Message> all;
    for (const Parcel& parcel : parcels) all.push_back({parcel.cells, parcel.message->peer});
    return all;
  };
  return start_exchange(group_, messages(going), messages(coming));
}

void HaloTurn::start(const std::vector<at::Tensor>& x) {
  for (const at::Tensor& each : x) {
    x_.push_back(each.detach());
    metas_.push_back({each.sizes().vec(), each.options().requires_grad(false), each.suggest_memory_format()});
    WELKIN_CHECK(sizes_of(metas_.back().sizes, plan_->held) == metas_.back().sizes && each.dtype() == x.front().dtype(),
                 "the boxes of an exchange have the extents of the own block and one type");
  }
  going_ = parcels_for(plan_->sends);
  for (const Parcel& parcel : going_) {
    for_cells(*parcel.message, parcel.cells, metas_,
              [&](const HaloBox& box, size_t i, const at::Tensor& cells) { cells.copy_(cut(x_[i], plan_->held, box.from)); });
  }
  coming_ = parcels_for(plan_->receives);
  transfer_ = send(going_, coming_);
}

// Fills in own cells, and zeros elsewhere; or the cells of other members, and of the other end of an own axis.
void HaloTurn::fill(const std::vector<at::Tensor>& strips, bool with_halos) const {
  const auto put = [&](const Block& block, size_t i, const at::Tensor& cells) {
    for (size_t p = first_strip(); p < plan_->pieces.size(); ++p) {
      const Block& needed = plan_->pieces[p].needed;
      const Block part = intersection(needed, block);
      if (part.empty()) continue;
      cut(strips[(p - first_strip()) * metas_.size() + i], needed, part).copy_(cut(cells, block, part));
    }
  };
  if (!with_halos) {
    for (size_t s = 0; s < strips.size(); ++s) {
      if (plan_->pieces[first_strip() + s / metas_.size()].reaches_out) strips[s].zero_();
    }
    for (size_t i = 0; i < metas_.size(); ++i) put(plan_->held, i, x_[i]);
    return;
  }
  for (const HaloBox& box : plan_->own_images) {
    for (size_t i = 0; i < metas_.size(); ++i) put(box.to, i, cut(x_[i], plan_->held, box.from));
  }
  for (const Parcel& parcel : halos_) {
    for_cells(*parcel.message, parcel.cells, metas_,
              [&](const HaloBox& box, size_t i, const at::Tensor& cells) { put(box.to, i, cells); });
  }
}

std::vector<at::Tensor> HaloTurn::finish() {
  std::vector<at::Tensor> strips;
  for (size_t p = first_strip(); p < plan_->pieces.size(); ++p) {
    for (const Meta& meta : metas_) {
      strips.push_back(at::empty(sizes_of(meta.sizes, plan_->pieces[p].needed), meta.options.memory_format(meta.format)));
    }
  }
  fill(strips, /*with_halos=*/false);
  transfer_.wait();
  going_.clear();
  halos_ = std::exchange(coming_, {});
  fill(strips, /*with_halos=*/true);
  for (const at::Tensor& strip : strips) made_strips_.push_back(over_storage_of(strip));
  return strips;
}

void HaloTurn::release_strips() {
  for (const at::Tensor& strip : made_strips_) {
    c10::StorageImpl& storage = *strip.storage().unsafeGetStorageImpl();
    storage.set_data_ptr_noswap(at::DataPtr(nullptr, strip.device()));
    storage.set_nbytes(size_t{0});
  }
  is_released_ = true;
}

void HaloTurn::restore_strips() {
  if (!is_released_) return;
  const at::NoGradGuard no_grad;
  for (const at::Tensor& strip : made_strips_) {
    c10::StorageImpl& storage = *strip.storage().unsafeGetStorageImpl();
    const auto bytes = static_cast<size_t>(strip.nbytes());
    storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes));
    storage.set_nbytes(bytes);
  }
  fill(made_strips_, /*with_halos=*/false);
  fill(made_strips_, /*with_halos=*/true);
  made_strips_.clear(), x_.clear(), halos_.clear();
}

// Adds the part of `block` in the strips to `to`, whose first cell is that of `block`.
void HaloTurn::add_strip_cells(const std::vector<at::Tensor>& strips, size_t tensor, const Block& block,
                               const at::Tensor& to) const {
  if (strips.empty()) return;
  for (size_t p = first_strip(); p < plan_->pieces.size(); ++p) {
    const Block& needed = plan_->pieces[p].needed;
    const Block part = intersection(needed, block);
    const at::Tensor& strip = strips[(p - first_strip()) * metas_.size() + tensor];
    if (!part.empty() && strip.defined()) cut(to, block, part).add_(cut(strip, needed, part));
  }
}

void HaloTurn::start_back(const std::vector<at::Tensor>& strips) {
  goes_back_ = true;
  strips_ = strips;
  going_ = parcels_for(plan_->receives);
  for (const Parcel& parcel : going_) {
    for_cells(*parcel.message, parcel.cells, metas_, [&](const HaloBox& box, size_t i, const at::Tensor& cells) {
      cells.zero_();
      add_strip_cells(strips_, i, box.to, cells);
    });
  }
  coming_ = parcels_for(plan_->sends);
  transfer_ = send(going_, coming_);
}

std::vector<at::Tensor> HaloTurn::finish_back(at::TensorList interior) {
  if (!goes_back_) start_back({});
  const Block& held = plan_->held;
  std::vector<at::Tensor> gradients;
  for (size_t i = 0; i < metas_.size(); ++i) {
    const bool has_interior = i < interior.size() && interior[i].defined();
    const Block inner = has_interior ? plan_->pieces.front().needed : Block{};
    const bool has_all = has_interior && inner == held && is_only_user(interior[i]);
    const at::Tensor gradient =
        has_all ? interior[i] : at::empty(metas_[i].sizes, metas_[i].options.memory_format(metas_[i].format));
    gradients.push_back(gradient);
    if (!has_interior) {
      gradient.zero_();
    } else if (!has_all) {
      cut(gradient, held, inner).copy_(interior[i]);
      for (const Block& slab : around(held, inner)) cut(gradient, held, slab).zero_();
    }
    add_strip_cells(strips_, i, held, gradient);
    for (const HaloBox& box : plan_->own_images) {
      const at::Tensor image = at::zeros(sizes_of(metas_[i].sizes, box.to), metas_[i].options);
      add_strip_cells(strips_, i, box.to, image);
      cut(gradient, held, box.from).add_(image);
    }
  }
  transfer_.wait();
  for (const Parcel& parcel : coming_) {
    for_cells(*parcel.message, parcel.cells, metas_,
              [&](const HaloBox& box, size_t i, const at::Tensor& cells) { cut(gradients[i], held, box.from).add_(cells); });
  }
  going_.clear(), coming_.clear(), strips_.clear();
  return gradients;
}

namespace {

struct TurnHolder : torch::CustomClassHolder {
  explicit TurnHolder(std::shared_ptr<HaloTurn> kept) : turn(std::move(kept)) {}
  std::shared_ptr<HaloTurn> turn;
};

void keep_turn(AutogradContext* context, const std::shared_ptr<HaloTurn>& turn) {
  context->saved_data["turn"] = c10::IValue::make_capsule(c10::make_intrusive<TurnHolder>(turn));
}

std::shared_ptr<HaloTurn> turn_of(AutogradContext* context) {
  return static_cast<TurnHolder&>(*context->saved_data["turn"].toCapsule()).turn;
}

struct OpenBlock : torch::autograd::Function<OpenBlock> {
  static variable_list forward(AutogradContext* context, at::TensorList x, const std::shared_ptr<HaloTurn>& turn) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    keep_turn(context, turn);
    turn->start(x.vec());
    variable_list out;
    if (turn->plan().has_interior) {
      for (const at::Tensor& each : x) out.push_back(cut(each, turn->plan().held, turn->plan().pieces.front().needed));
    }
    out.push_back(at::zeros({1}, x.front().options().requires_grad(false)));
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    ops::once_differentiable("halo exchange");
    variable_list out = turn_of(context)->finish_back(at::TensorList(grads).slice(0, grads.size() - 1));
    out.emplace_back();
    return out;
  }
};

struct FillStrips : torch::autograd::Function<FillStrips> {
  static variable_list forward(AutogradContext* context, const at::Tensor& token, const std::shared_ptr<HaloTurn>& turn) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    keep_turn(context, turn);
    context->saved_data["options"] = token;
    return turn->finish();
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    ops::once_differentiable("halo exchange");
    turn_of(context)->start_back(grads);
    return {at::zeros({1}, context->saved_data["options"].toTensor().options().requires_grad(false)), {}};
  }
};

struct BlockMemory {
  at::Tensor whole;  // undefined: pieces are copied together
};

struct JoinPieces : torch::autograd::Function<JoinPieces> {
  static at::Tensor forward(AutogradContext* context, at::TensorList made, const std::shared_ptr<HaloTurn>& turn,
                            const BlockMemory& memory) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    keep_turn(context, turn);
    const HaloPlan& plan = turn->plan();
    const at::Tensor& first = made.front();
    if (made.size() == 1) return at::alias(first);
    if (memory.whole.defined()) return at::alias(memory.whole);
    at::Tensor whole = at::empty(sizes_of(first.sizes().vec(), plan.made),
                                 first.options().requires_grad(false).memory_format(first.suggest_memory_format()));
    for (size_t p = 0; p < made.size(); ++p) cut(whole, plan.made, plan.pieces[p].made).copy_(made[p]);
    return whole;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const std::shared_ptr<HaloTurn> turn = turn_of(context);
    turn->restore_strips();
    variable_list out;
    for (const HaloPiece& piece : turn->plan().pieces) out.push_back(cut(grads[0], turn->plan().made, piece.made));
    out.resize(out.size() + 2);
    return out;
  }
};

}  // namespace

OpenedBlock open_block(const std::shared_ptr<HaloTurn>& turn, const std::vector<at::Tensor>& x) {
  variable_list out = OpenBlock::apply(at::TensorList(x), turn);
  at::Tensor token = out.back();
  out.pop_back();
  return {std::move(out), std::move(token)};
}

std::vector<at::Tensor> fill_strips(const std::shared_ptr<HaloTurn>& turn, const at::Tensor& token) {
  const HaloPlan& plan = turn->plan();
  if (plan.pieces.size() > (plan.has_interior ? 1U : 0U)) return FillStrips::apply(token, turn);
  turn->finish();
  return {};
}

at::Tensor join_pieces(const std::shared_ptr<HaloTurn>& turn, const std::vector<at::Tensor>& made, const at::Tensor& memory) {
  if (made.size() == 1 && turn->plan().has_interior) return made.front();  // no strips needed
  at::Tensor whole = JoinPieces::apply(at::TensorList(made), turn, BlockMemory{memory});
  if (whole.requires_grad()) turn->release_strips();
  return whole;
}

}  // namespace welkin::parallel
