// SPDX-License-Identifier: Apache-2.0
// Weights of which a rank holds its pieces only, and the whole while it is used: gathered before the forward pass of their unit
// and before its backward pass, with those that come next on the way, and let go after each. A parameter stays the tensor that
// it is: its memory comes and goes, so that what autograd has kept of it finds the same values there again.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallel/comm/collectives.h"
#include "parallel/shard/gradient_exchange.h"
#include "parallel/sharding/shard_bucket.h"
#include "parallel/sharding/weight_units.h"

namespace welkin::parallel {

struct GatherOptions {
  bool reshard_after_forward = true;
  int64_t prefetch = 1;  // units
};

// Who keeps pieces elsewhere than in memory: they are there between wait_for_pieces() and let_go_of_pieces(), which
// start_pieces() precedes by as much as it can.
class PieceHolder {
 public:
  virtual ~PieceHolder() = default;
  virtual void start_pieces(const std::vector<ParamRow*>& rows) = 0;
  virtual void wait_for_pieces(const std::vector<ParamRow*>& rows) = 0;
  virtual void let_go_of_pieces(const std::vector<ParamRow*>& rows) = 0;
};

class GatheredUnits {
 public:
  // The weights are whole; their rows get pieces of their own, and their memory goes. Every rank of the group calls everything
  // here in the same order.
  GatheredUnits(std::vector<WeightUnit> units, const Group& group, const GatherOptions& options);
  GatheredUnits(const GatheredUnits&) = delete;
  GatheredUnits& operator=(const GatheredUnits&) = delete;

  // By unit, in the order of the forward pass.
  const std::vector<std::vector<ParamRow*>>& trained_rows() const { return trained_; }

  // From now on `holder`, which outlives it, has the pieces. Between passes.
  void keep_pieces(PieceHolder& holder) { holder_ = &holder; }

  // A pass is of one chunk: 0 where no pipeline cuts the model.
  void before_forward(int64_t chunk);
  void after_forward();
  // The pass may come long after its forward pass, and others of the step after it: where weights are not let go after forward
  // passes, they stay until the one that ends the chunk.
  void before_backward(const GradientPass& pass);
  // When the gradients of trained_rows()[unit] are complete; units with frozen weights stay until the end of the pass.
  void after_gradients(size_t unit);
  void after_backward(int64_t chunk);
  // The pieces have changed.
  void after_update();

 private:
  enum class Place { Shards, UnderWay, Whole };
  struct Unit {
    bool is_whole_model = false, is_trained = false;
    int64_t chunk = 0;
    std::vector<int64_t> other_chunks;
    std::vector<ParamRow*> rows;              // all
    std::vector<ParamRow*> direct;            // gathered into their own memory, a message each
    std::vector<at::Tensor> direct_memories;  // which follow the storage of their row
    ShardBucket bucket;                       // the others, in one message; may have no rows
    std::vector<at::Tensor> memories;         // of the bucket's rows
    Place place = Place::Shards;
    bool has_pieces = false;  // from a holder, or they are on the way from it
    at::Tensor all;
    std::vector<Transfer> transfers{};

    bool is_of(int64_t number) const { return chunk == number || std::ranges::find(other_chunks, number) != other_chunks.end(); }
  };

  void add(const WeightUnit& unit);
  at::Tensor shard_weights(ParamRow& row) const;
  void install(model::Site& site, size_t number);
  void ask_for_pieces(Unit& unit);
  void let_go_of_pieces(Unit& unit);
  void start(Unit& unit);
  void wait(Unit& unit);
  void gather(size_t number, int64_t direction);
  void release(Unit& unit);
  void release_all();
  void release_behind(size_t number);

  Group group_;
  GatherOptions options_;
  PieceHolder* holder_ = nullptr;  // null: pieces are in memory
  std::vector<Unit> units_;
  std::vector<std::vector<ParamRow*>> trained_;
  bool stays_ = false;         // weights do after this backward pass
  bool weights_wait_ = false;  // gradients do not tell of the end of a unit in this backward pass
};

}  // namespace welkin::parallel
