// SPDX-License-Identifier: Apache-2.0
// --offload parameters with sharded weights (--shard full): a file holds a rank's pieces. The pieces of a unit are read before
// it is gathered, the next unit's meanwhile, and freed when the whole is there. `exchange` does the gathering.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "parallel/sharding/sharded_parallel.h"
#include "train/offload/offloaded_optimizer.h"
#include "train/offload/weight_store.h"

namespace welkin::train {

class OffloadedPieces final : public parallel::GradientExchange, public parallel::PieceHolder, public WeightHolder {
 public:
  // The rows must have their pieces. They get functions that read and write these. The rows outlive this object.
  OffloadedPieces(std::unique_ptr<parallel::ShardedParallel> exchange, parallel::ParamTable& table,
                  const std::filesystem::path& folder);

  void backward(const at::Tensor& loss, bool is_last) override { exchange_->backward(loss, is_last); }
  bool averages() const override { return exchange_->averages(); }
  void clear_gradients() override { exchange_->clear_gradients(); }
  void before_forward() override { exchange_->before_forward(); }
  void after_forward() override { exchange_->after_forward(); }
  void after_update() override { exchange_->after_update(); }
  void before_chunk(int64_t chunk) override { exchange_->before_chunk(chunk); }
  void backward_chunk(const at::Tensor& root, const parallel::GradientPass& pass) override {
    exchange_->backward_chunk(root, pass);
  }
  void weights_of_chunk(const std::function<void()>& compute, const parallel::GradientPass& pass) override {
    exchange_->weights_of_chunk(compute, pass);
  }
  void complete_weights() override { exchange_->complete_weights(); }
  bool joins_every_backward() const override { return exchange_->joins_every_backward(); }
  bool joins_every_forward() const override { return exchange_->joins_every_forward(); }
  std::vector<parallel::Bucket> buckets() const override { return exchange_->buckets(); }
  int64_t bytes_per_step() const override { return exchange_->bytes_per_step(); }

  void start_pieces(const std::vector<parallel::ParamRow*>& rows) override;
  void wait_for_pieces(const std::vector<parallel::ParamRow*>& rows) override;
  void let_go_of_pieces(const std::vector<parallel::ParamRow*>& rows) override;

  // Numbers count the trained rows.
  void start(const std::vector<size_t>& parameters) override;
  void wait(const std::vector<size_t>& parameters) override;
  void let_go(const std::vector<size_t>& parameters, bool is_changed) override;

  const WeightStore& store() const { return store_; }

 private:
  size_t number_of(const parallel::ParamRow* row) const { return static_cast<size_t>(row - table_.rows().data()); }

  parallel::ParamTable& table_;
  std::unique_ptr<parallel::ShardedParallel> exchange_;
  WeightStore store_;
  std::vector<size_t> trained_;  // rows that are trained
};

}  // namespace welkin::train
