// SPDX-License-Identifier: Apache-2.0
#include "parallel/sharding/sharded_parallel.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "core/error.h"

namespace welkin::parallel {
namespace {

using config::ShardStage;

constexpr int64_t kBytesPerMb = 1 << 20;

std::optional<at::ScalarType> travelling_type(GradientDtype dtype) {
  if (dtype == GradientDtype::Bf16) return at::kBFloat16;
  return dtype == GradientDtype::Fp16 ? std::optional(at::kHalf) : std::nullopt;
}

GradientBatch batch_of(const std::vector<ParamRow*>& rows, int64_t members) {
  GradientBatch buckets;
  for (std::vector<ParamRow*>& run : rows_of_messages(rows)) buckets.emplace_back(std::move(run), members);
  return buckets;
}

// A unit's rows from last to first, the order of their gradients, in runs of at most so many bytes, or of one row.
std::vector<std::vector<ParamRow*>> runs_of_most(const std::vector<ParamRow*>& rows, int64_t most) {
  std::vector<std::vector<ParamRow*>> runs;
  int64_t bytes = most;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const auto own = static_cast<int64_t>((*row)->local.nbytes());
    if (bytes + own > most) {
      runs.emplace_back();
      bytes = 0;
    }
    runs.back().push_back(*row);
    bytes += own;
  }
  return runs;
}

}  // namespace

ShardedParallel::ShardedParallel(model::Model& model, ParamTable& table, const ShardGroups& groups,
                                 const ShardingOptions& options)
    : table_(table), groups_(groups), options_(options) {
  spread_weights(table, groups_.replicas);
  spread_weights(table, groups_.shards);
  for (ParamRow& row : table.rows()) {
    row.is_split_over_cp = groups_.with_cp;
    row.split_block = options_.block;
    const bool is_low = options_.gather_dtype == config::GatherDtype::Bf16 && row.decay == DecayGroup::Decay;
    const bool is_cut = options_.stage == ShardStage::Full || row.local.requires_grad();
    if (is_low && is_cut && row.local.scalar_type() == at::kFloat) row.gathered_as = at::kBFloat16;
  }
  options_.stage == ShardStage::Full ? shard_weights(model, table) : shard_state(model, table);
}

// Pieces are views; buckets follow the order in which gradients arrive.
void ShardedParallel::shard_state(model::Model& model, ParamTable& table) {
  const at::NoGradGuard no_grad;
  const int64_t members = groups_.shards.size();
  for (ParamRow& row : table.rows()) {
    if (!row.local.requires_grad()) continue;
    row.split = MemorySplit(row.local, members, row.split_block);
    row.shard = row.split.piece_of(memory_of(row.local), groups_.shards.group_rank());
    if (row.gathered_as) row.shard = row.shard.clone();
  }
  std::map<int64_t, std::vector<GradientBatch>, std::greater<>> of_chunks;
  for (const Bucket& bucket : plan_buckets(table, options_.bucket_cap_mb)) {
    std::map<int64_t, std::vector<ParamRow*>> rows;
    for (const size_t row : bucket.parameters) rows[table.rows()[row].chunk].push_back(&table.rows()[row]);
    for (const auto& [chunk, own] : rows) of_chunks[chunk].push_back(batch_of(own, members));
  }
  std::vector<GradientBatch> batches;
  for (auto& [chunk, own] : of_chunks) std::ranges::move(own, std::back_inserter(batches));
  gradients_ = std::make_unique<ShardedGradients>(std::move(batches), groups_, travelling_type(options_.comm_dtype));
  updated_ = std::make_unique<UpdatedUnits>(weight_units(model, table), groups_.shards, options_.gather.prefetch);
  if (options_.gather_dtype == config::GatherDtype::Fp32) return;
  updated_->start();  // so that weights are rounded from the first step on
  updated_->complete();
}

// A unit's weights are freed when all of its gradients are being sent.
void ShardedParallel::shard_weights(model::Model& model, ParamTable& table) {
  units_ = std::make_unique<GatheredUnits>(weight_units(model, table), groups_.shards, options_.gather);
  std::vector<GradientBatch> batches;  // those of the forward pass's last unit come first
  std::vector<size_t> unit_of_bucket;
  const auto& units = units_->trained_rows();
  buckets_of_unit_.resize(units.size());
  for (size_t unit = units.size(); unit-- > 0;) {
    for (const std::vector<ParamRow*>& rows : runs_of_most(units[unit], options_.bucket_cap_mb * kBytesPerMb)) {
      batches.push_back(batch_of(rows, groups_.shards.size()));
      unit_of_bucket.insert(unit_of_bucket.end(), batches.back().size(), unit);
      buckets_of_unit_[unit] += std::ssize(batches.back());
    }
  }
  gradients_ = std::make_unique<ShardedGradients>(std::move(batches), groups_, travelling_type(options_.comm_dtype));
  gradients_->on_complete = [this, unit_of_bucket](size_t bucket) {
    const size_t unit = unit_of_bucket[bucket];
    if (--missing_of_unit_[unit] == 0) units_->after_gradients(unit);
  };
}

// A rank without samples made no forward pass.
void ShardedParallel::run_pass(const at::Tensor& root, const GradientPass& pass, bool reduces, std::optional<int64_t> chunk) {
  complete_weights();
  if (units_) units_->before_backward(pass);
  missing_of_unit_ = buckets_of_unit_;
  gradients_->begin_pass(reduces, chunk);
  root.backward();
  gradients_->finish_pass();
  if (units_) units_->after_backward(pass.chunk);
}

void ShardedParallel::backward(const at::Tensor& loss, bool is_last) {
  run_pass(loss, {.ends_chunk = is_last}, is_last || joins_every_backward(), {});
}

// Delayed gradients are reduced with the others of their pass.
void ShardedParallel::backward_chunk(const at::Tensor& root, const GradientPass& pass) {
  if (!joins_every_backward()) return backward(root, pass.ends_step);
  run_pass(root, pass, !pass.weights_wait, pass.chunk);
}

void ShardedParallel::weights_of_chunk(const std::function<void()>& compute, const GradientPass& pass) {
  if (!joins_every_backward()) return compute();
  gradients_->begin_pass(/*reduces=*/true, pass.chunk);
  compute();
  gradients_->finish_pass();
  if (units_ && pass.ends_chunk) units_->after_backward(pass.chunk);
}

void ShardedParallel::before_forward() { before_chunk(0); }

void ShardedParallel::before_chunk(int64_t chunk) { units_ ? units_->before_forward(chunk) : updated_->before_forward(); }

void ShardedParallel::after_forward() { units_ ? units_->after_forward() : updated_->complete(); }

void ShardedParallel::after_update() { units_ ? units_->after_update() : updated_->start(); }

void ShardedParallel::complete_weights() {
  if (updated_) updated_->complete();
}

void ShardedParallel::keep_pieces(PieceHolder& holder) {
  WELKIN_CHECK(units_ != nullptr, "pieces of weights are kept apart where weights are shared out");
  units_->keep_pieces(holder);
}

std::vector<Bucket> ShardedParallel::buckets() const {
  std::vector<Bucket> all;
  for (const ShardBucket& bucket : gradients_->buckets()) {
    Bucket one{.parameters = {}, .bytes = bucket.bytes()};
    for (const ParamRow* row : bucket.rows()) one.parameters.push_back(static_cast<size_t>(row - table_.rows().data()));
    all.push_back(std::move(one));
  }
  return all;
}

int64_t ShardedParallel::bytes_per_step() const {
  int64_t bytes = 0;
  for (const ShardBucket& bucket : gradients_->buckets()) bytes += bucket.bytes();
  return options_.comm_dtype == GradientDtype::Same ? bytes : bytes / 2;
}

at::Tensor gathered_whole(const Group& shards, const ParamRow& row, const at::Tensor& piece) {
  const at::NoGradGuard no_grad;
  WELKIN_CHECK(piece.sizes() == row.shard.sizes(), "a piece has the shape of the row's own");
  const int64_t longest = row.split.longest();
  const auto options = piece.options().requires_grad(false);
  const at::Tensor part = at::empty({longest}, options), all = at::empty({shards.size(), longest}, options);
  part.narrow(0, 0, piece.numel()).copy_(piece.detach().reshape({-1}));
  start_all_gather_into(shards, all, part).wait();
  at::Tensor whole = at::empty_strided(row.local.sizes(), row.local.strides(), options);
  const at::Tensor memory = memory_of(whole);
  for (int64_t member = 0; member < shards.size(); ++member) {
    const int64_t count = row.split.numel(member);
    memory.narrow(0, row.split.offset(member), count).copy_(all[member].narrow(0, 0, count));
  }
  return whole;
}

}  // namespace welkin::parallel
