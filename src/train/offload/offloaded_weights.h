// SPDX-License-Identifier: Apache-2.0
// --offload parameters: weights are read before their unit's forward and before its backward pass, the next unit's meanwhile,
// and freed after each. Any other user holds a weight while it needs it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "model/base/model.h"
#include "parallel/shard/gradient_exchange.h"
#include "parallel/sharding/weight_units.h"
#include "train/offload/offloaded_optimizer.h"
#include "train/offload/weight_store.h"

namespace welkin::train {

// Wraps an exchange of gradients, which does its own work as before.
class OffloadedWeights final : public parallel::GradientExchange, public WeightHolder {
 public:
  // Wraps the sites outside of all wrappers except activation offload; rows get functions that read and write them. All
  // arguments except `exchange` outlive it.
  OffloadedWeights(std::unique_ptr<GradientExchange> exchange, model::Model& model, parallel::ParamTable& table,
                   const std::filesystem::path& folder);

  void backward(const at::Tensor& loss, bool is_last) override;
  bool averages() const override { return exchange_->averages(); }
  void clear_gradients() override { exchange_->clear_gradients(); }
  void before_forward() override;
  void after_forward() override;
  void after_update() override { exchange_->after_update(); }
  void before_chunk(int64_t chunk) override;
  void backward_chunk(const at::Tensor& root, const parallel::GradientPass& pass) override;
  void weights_of_chunk(const std::function<void()>& compute, const parallel::GradientPass& pass) override {
    exchange_->weights_of_chunk(compute, pass);
  }
  void complete_weights() override { exchange_->complete_weights(); }
  bool joins_every_backward() const override { return exchange_->joins_every_backward(); }
  bool joins_every_forward() const override { return true; }  // a rank without samples cannot read weights outside of a pass
  std::vector<parallel::Bucket> buckets() const override { return exchange_->buckets(); }
  int64_t bytes_per_step() const override { return exchange_->bytes_per_step(); }

  // Numbers count the trained rows.
  void start(const std::vector<size_t>& parameters) override;
  void wait(const std::vector<size_t>& parameters) override;
  void let_go(const std::vector<size_t>& parameters, bool is_changed) override;

  const WeightStore& store() const { return store_; }

 private:
  struct Unit {
    std::vector<size_t> weights;
    bool is_whole_model = false, is_trained = false;
    int64_t chunk = 0;
    std::vector<int64_t> other_chunks;
    size_t num_trained = 0, missing = 0;  // gradients, in this pass
    bool is_started = false, is_there = false;
  };

  void add(const parallel::WeightUnit& unit, parallel::ParamTable& table);
  void install(model::Site& site, size_t number);
  void listen(const parallel::ParamRow& row, size_t number);
  void start_unit(Unit& unit);
  bool is_of_chunk(int64_t number, int64_t chunk) const;
  void bring(size_t number, int64_t direction);
  void bring_whole(int64_t chunk, int64_t direction);
  void begin_backward();
  void release(Unit& unit);
  void release_behind(size_t number);
  void release_all();

  std::unique_ptr<GradientExchange> exchange_;
  WeightStore store_;
  std::vector<Unit> units_;
  std::vector<size_t> trained_;  // rows of the trained weights
  bool weights_wait_ = false;    // in this backward pass gradients do not mark the end of a unit
};

}  // namespace welkin::train
