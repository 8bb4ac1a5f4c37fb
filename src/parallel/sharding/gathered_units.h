// SPDX-License-Identifier: Apache-2.0
// Weights of which a rank keeps only its pieces, and the whole while it is used: gathered before the forward and the backward
// pass of their unit, with the next units in flight, and freed after each. A parameter stays the same tensor: only its memory
// is freed and restored, so that views kept by autograd find the same values again.
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

// Keeps pieces outside of memory: they are in memory between wait_for_pieces() and let_go_of_pieces(). start_pieces()
// precedes the wait by as much as possible.
class PieceHolder {
 public:
  virtual ~PieceHolder() = default;
  virtual void start_pieces(const std::vector<ParamRow*>& rows) = 0;
  virtual void wait_for_pieces(const std::vector<ParamRow*>& rows) = 0;
  virtual void let_go_of_pieces(const std::vector<ParamRow*>& rows) = 0;
};

class GatheredUnits {
 public:
  // Takes whole weights; their rows get separate pieces, and the memory of the whole is freed. Every rank of the group calls
  // all functions in the same order.
  GatheredUnits(std::vector<WeightUnit> units, const Group& group, const GatherOptions& options);
  GatheredUnits(const GatheredUnits&) = delete;
  GatheredUnits& operator=(const GatheredUnits&) = delete;

  // By unit, in the order of the forward pass.
  const std::vector<std::vector<ParamRow*>>& trained_rows() const { return trained_; }

  // From now on `holder`, which outlives this object, has the pieces. Call it between passes.
  void keep_pieces(PieceHolder& holder) { holder_ = &holder; }

  // A pass belongs to one chunk: 0 without a pipeline.
  void before_forward(int64_t chunk);
  void after_forward();
  // A pass may come long after its forward pass, and other passes of the step may follow. Weights that are not freed after
  // forward passes stay until the pass that ends the chunk.
  void before_backward(const GradientPass& pass);
  // Call it when the gradients of trained_rows()[unit] are complete. Units with frozen weights stay until the end of the pass.
  void after_gradients(size_t unit);
  void after_backward(int64_t chunk);
  // Call it when the pieces have changed.
  void after_update();

 private:
  enum class Place { Shards, UnderWay, Whole };
  struct Unit {
    bool is_whole_model = false, is_trained = false;
    int64_t chunk = 0;
    std::vector<int64_t> other_chunks;
    std::vector<ParamRow*> rows;              // all
    std::vector<ParamRow*> direct;            // gathered into their own memory, one message each
    std::vector<at::Tensor> direct_memories;  // follow the storage of their rows
    ShardBucket bucket;                       // the other rows, in one message; may be empty
    std::vector<at::Tensor> memories;         // of the bucket's rows
    Place place = Place::Shards;
    bool has_pieces = false;  // the holder has provided them, or is about to
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
  bool stays_ = false;         // weights stay after this backward pass
  bool weights_wait_ = false;  // gradients do not mark the end of a unit in this backward pass
};

}  // namespace welkin::parallel
