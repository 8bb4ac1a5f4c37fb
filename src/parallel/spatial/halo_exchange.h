// SPDX-License-Identifier: Apache-2.0
// The exchange of halos with its gradient, as two nodes around the interior's computation. The first node sends own cells and
// returns the interior; the second waits for the halos and returns the strips that need them. The backward pass reverses this:
// the strips' gradients are sent back first, the interior's backward pass runs meanwhile, and the first node adds everything
// up. Boxes are (B, C, D, H, W), one or several with the same block. Differentiable once.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "parallel/comm/collectives.h"
#include "parallel/spatial/halo_plan.h"

namespace welkin::parallel {

// One exchange, forward and backward. Both nodes share it.
class HaloTurn {
 public:
  HaloTurn(Group group, std::shared_ptr<const HaloPlan> plan) : group_(std::move(group)), plan_(std::move(plan)) {}

  const HaloPlan& plan() const { return *plan_; }

  void start(const std::vector<at::Tensor>& x);  // sends own cells
  // Cells that each piece except the interior needs, for each box: halos, own cells, and zeros beyond the border.
  std::vector<at::Tensor> finish();
  // Between the passes strips have no memory: own cells are in x, which is kept anyway, and halos are kept as they came.
  void release_strips();
  void restore_strips();

  // `strips`: gradients of the results of finish(), undefined if there are none. Sends the halos' gradients back.
  void start_back(const std::vector<at::Tensor>& strips);
  // Gradients of the inputs of start(), from those of the interior (an empty list if there is none), in whose memory they are
  // made if no one else uses it.
  std::vector<at::Tensor> finish_back(at::TensorList interior);

 private:
  // Cells in flight between this member and another: for each box of the message, of each tensor, one after the other.
  struct Parcel {
    const HaloMessage* message = nullptr;
    at::Tensor cells;
  };
  struct Meta {  // of an input tensor
    std::vector<int64_t> sizes;
    at::TensorOptions options;
    at::MemoryFormat format;
  };

  std::vector<Parcel> parcels_for(const std::vector<HaloMessage>& messages) const;
  Transfer send(const std::vector<Parcel>& going, const std::vector<Parcel>& coming) const;
  void fill(const std::vector<at::Tensor>& strips, bool with_halos) const;
  size_t first_strip() const { return plan_->has_interior ? 1 : 0; }
  void add_strip_cells(const std::vector<at::Tensor>& strips, size_t tensor, const Block& block, const at::Tensor& to) const;

  Group group_;
  std::shared_ptr<const HaloPlan> plan_;
  std::vector<Meta> metas_;
  std::vector<at::Tensor> x_;
  std::vector<at::Tensor> made_strips_;  // tensors over the same storages; changes through them do not count for autograd
  std::vector<Parcel> going_, coming_;
  Transfer transfer_;
  std::vector<Parcel> halos_;       // received in the forward pass
  std::vector<at::Tensor> strips_;  // gradients, until they are added
  bool goes_back_ = false, is_released_ = false;
};

// x -> the interior of each (empty if the plan has none), and a token for the exchange in flight.
struct OpenedBlock {
  std::vector<at::Tensor> interior;
  at::Tensor token;
};
OpenedBlock open_block(const std::shared_ptr<HaloTurn>& turn, const std::vector<at::Tensor>& x);

// The strips, piece by piece; within a piece tensor by tensor.
std::vector<at::Tensor> fill_strips(const std::shared_ptr<HaloTurn>& turn, const at::Tensor& token);

// Joins the results of the plan's pieces, each (B, C, extents of the piece). `memory`: of the whole, if the pieces lie there
// already; else they are copied. The strips get their memory back before the pieces' backward passes.
at::Tensor join_pieces(const std::shared_ptr<HaloTurn>& turn, const std::vector<at::Tensor>& made, const at::Tensor& memory = {});

// The cells `block` of a tensor (B, C, D, H, W) whose cells are `whole`.
at::Tensor cut(const at::Tensor& values, const Block& whole, const Block& block);

}  // namespace welkin::parallel
