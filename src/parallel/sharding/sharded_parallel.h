// SPDX-License-Identifier: Apache-2.0
// Sharded data parallelism: ranks with equal weights share the memory of a training step, so that each holds 1/N of it.
// Rajbhandari et al. 2020, "ZeRO", arXiv:1910.02054; Zhao et al. 2023, "PyTorch FSDP", arXiv:2304.11277.
//
// | stage     | sharded                 | bytes of a step, of weights P |
// | Optimizer | the optimizer's states  | gradients reduced P, weights gathered P |
// | Gradients | those and gradients     | the same; gradients in every micro-step |
// | Full      | those and weights       | weights gathered 2 P, gradients reduced P, in every micro-step |
//
// Parameters keep their names. Each is cut separately (parallel/shard/memory_split.h), even if tensor parallelism has already
// cut it. A parameter that a step has not used has a gradient of zero.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "config/schema/run_config.h"
#include "parallel/shard/gradient_exchange.h"
#include "parallel/sharding/gathered_units.h"
#include "parallel/sharding/sharded_gradients.h"
#include "parallel/sharding/updated_units.h"

namespace welkin::parallel {

struct ShardingOptions {
  config::ShardStage stage = config::ShardStage::Optimizer;
  int64_t bucket_cap_mb = 25;
  GradientDtype comm_dtype = GradientDtype::Same;
  config::GatherDtype gather_dtype = config::GatherDtype::Fp32;  // of weights of matmuls and convolutions (DecayGroup::Decay)
  int64_t block = 1;                                             // elements that an optimizer encodes together
  GatherOptions gather{};
};

class ShardedParallel final : public GradientExchange {
 public:
  // Every rank of both groups calls it: the first rank's weights are sent to all, and the rows of the table get their pieces.
  // Call it after all wrappers of sites, and before an optimizer sees the table. Model and table outlive it.
  ShardedParallel(model::Model& model, ParamTable& table, const ShardGroups& groups, const ShardingOptions& options);

  void backward(const at::Tensor& loss, bool is_last) override;
  bool averages() const override { return false; }
  void clear_gradients() override { gradients_->clear(); }
  void before_forward() override;
  void after_forward() override;
  void after_update() override;
  void before_chunk(int64_t chunk) override;
  void backward_chunk(const at::Tensor& root, const GradientPass& pass) override;
  void weights_of_chunk(const std::function<void()>& compute, const GradientPass& pass) override;
  void complete_weights() override;
  bool joins_every_backward() const override { return options_.stage != config::ShardStage::Optimizer; }
  bool joins_every_forward() const override { return options_.stage == config::ShardStage::Full; }
  // For stage Full: from now on `holder`, which outlives this object, has the pieces.
  void keep_pieces(PieceHolder& holder);
  std::vector<Bucket> buckets() const override;
  int64_t bytes_per_step() const override;

 private:
  void shard_state(model::Model& model, ParamTable& table);
  void shard_weights(model::Model& model, ParamTable& table);
  void run_pass(const at::Tensor& root, const GradientPass& pass, bool reduces, std::optional<int64_t> chunk);

  ParamTable& table_;
  ShardGroups groups_;
  ShardingOptions options_;
  std::unique_ptr<GatheredUnits> units_;   // stage Full
  std::unique_ptr<UpdatedUnits> updated_;  // other stages
  std::unique_ptr<ShardedGradients> gradients_;
  std::vector<int64_t> buckets_of_unit_,
      missing_of_unit_;  // stage Full: missing messages of gradients, now and at the beginning of a pass
};

// The whole tensor from the members' `piece`s, in the memory order of the row's parameter: the weights of a piece, or their
// state. A new tensor. Every rank of the group calls it.
at::Tensor gathered_whole(const Group& shards, const ParamRow& row, const at::Tensor& piece);

}  // namespace welkin::parallel
