// SPDX-License-Identifier: Apache-2.0
#include "train/offload/offload.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "model/layers/linear.h"
#include "parallel/plans/plan.h"
#include "parallel/sharding/weight_units.h"
#include "train/offload/block_ring.h"
#include "train/offload/offloaded_pieces.h"
#include "train/offload/offloaded_weights.h"

namespace welkin::train {
namespace {

bool is_offloaded(const config::RunConfig& config, const char* what) {
  return std::ranges::find(config.backend.offload, what) != config.backend.offload.end();
}

}  // namespace

void check_offload(const config::RunConfig& config, c10::Device device) {
  const config::BackendConfig& backend = config.backend;
  if (is_offloaded(config, "parameters") && !device.is_cpu()) {
    throw ConfigError("offload", cat("weights leave the memory of a CPU's run alone: offload=parameters, device=", device.str()),
                      "Take parameters out of offload; --shard full shares weights out");
  }
  if (backend.offload.empty() || !device.is_cpu() || !backend.offload_path.empty()) return;
  throw ConfigError("offload",
                    cat("a run on a CPU needs a folder for it: offload=", join(backend.offload, ","), ", offload_path="),
                    "Name a folder on a local disk: --offload_path DIR");
}

namespace {

// The site of a linear layer is its matmul: a wrapper there would separate the bias, with other roundings.
bool is_linear(const model::Model& model, const model::Site& site) {
  return std::ranges::any_of(model.modules(/*include_self=*/false), [&](const auto& module) {
    const auto* linear = dynamic_cast<const model::Linear*>(module.get());
    return linear != nullptr && linear->path() == site.name();
  });
}

// In a pipeline: the sites of this rank's stages.
std::vector<model::Site*> sites_to_offload(model::Model& model, parallel::ParamTable& table) {
  const auto is_here = [&](const model::Site& site) {
    return std::ranges::any_of(table.rows(), [&](const auto& row) { return row.name.starts_with(site.name() + "."); });
  };
  std::vector<model::Site*> sites;
  for (model::Site* site : model.sites()) {
    if (parallel::matches_pattern("blocks.*", site->name()) && is_here(*site)) sites.push_back(site);
  }
  if (!sites.empty()) return sites;
  for (const parallel::WeightUnit& unit : parallel::weight_units(model, table)) {
    if (unit.site != nullptr && !is_linear(model, *unit.site)) sites.push_back(unit.site);
  }
  return sites;
}

}  // namespace

bool Offload::has_optimizer() const { return is_offloaded(config_, "optimizer"); }

int64_t Offload::bytes_of_buffer() const { return static_cast<int64_t>(config_.backend.offload_buffer_mib * (1 << 20)); }

OffloadPlan Offload::plan(const std::string& holds) const {
  OffloadPlan plan{.device = device_, .buffer_bytes = bytes_of_buffer()};
  plan.weights = weights_;
  plan.make_store = [path = has_optimizer() ? config_.backend.offload_path : std::string(),
                     holds](HostMemory memory) -> std::unique_ptr<BlockStore> {
    if (path.empty()) return std::make_unique<HostBlocks>(std::move(memory));
    return std::make_unique<FileBlocks>(path, holds, std::move(memory));
  };
  return plan;
}

void Offload::note(const std::string& holds, const BlockStore& store) {
  notes_.push_back(cat("Offload: the ", holds, " are ", store.place(), ": ", format_bytes(store.bytes()), ", ",
                       format_bytes(store.memory_bytes()), " of host memory on each rank"));
  buffer_bytes_ += static_cast<int64_t>(store.memory_bytes());
}

OptimizerPtr Offload::optimizer(const OptimizerFactory& make, UpdateScope scope, double states_per_element,
                                std::vector<OptimizerParameter> parameters) {
  if (!has_optimizer() && !has_weights()) return make(config_, std::move(parameters));
  if (scope == UpdateScope::Model) {
    throw ConfigError("offload",
                      cat("this optimizer does not say that its parameters can be updated one after the other: optimizer=",
                          config_.optimizer.optimizer, ", offload=", join(config_.backend.offload, ",")),
                      "Give its OptimizerEntry a scope, take another optimizer, or leave optimizer out of offload");
  }
  const char* const holds = "optimizer states";
  OffloadPlan how = plan(holds);
  const bool is_lean =
      config_.optimizer.optimizer_state != config::OptimizerState::Fp32;  // its blocks and streams are per parameter
  how.scope = is_lean || has_weights() ? UpdateScope::Parameter : scope;
  how.bytes_per_element = std::max(states_per_element, 1.0) * sizeof(float);
  auto offloaded = std::make_unique<OffloadedOptimizer>(config_, make, std::move(parameters), how);
  if (has_optimizer()) note(holds, offloaded->store());
  return offloaded;
}

std::unique_ptr<parallel::GradientExchange> Offload::weights(std::unique_ptr<parallel::GradientExchange> exchange,
                                                             model::Model& model, parallel::ParamTable& table) {
  if (!is_offloaded(config_, "parameters")) return exchange;
  const auto keep = [&](auto offloaded, const char* what) -> std::unique_ptr<parallel::GradientExchange> {
    weights_ = offloaded.get();
    notes_.push_back(
        cat("Offload: the ", what, " are ", offloaded->store().place(), ": ", format_bytes(offloaded->store().bytes())));
    return offloaded;
  };
  const std::string& folder = config_.backend.offload_path;
  if (auto* const sharded = dynamic_cast<parallel::ShardedParallel*>(exchange.get())) {
    static_cast<void>(exchange.release());
    std::unique_ptr<parallel::ShardedParallel> own(sharded);
    return keep(std::make_unique<OffloadedPieces>(std::move(own), table, folder), "pieces of weights");
  }
  return keep(std::make_unique<OffloadedWeights>(std::move(exchange), model, table, folder), "weights");
}

std::unique_ptr<ActivationOffload> Offload::activations(model::Model& model, parallel::ParamTable& table) {
  if (!is_offloaded(config_, "activations")) return nullptr;
  const std::vector<model::Site*> sites = sites_to_offload(model, table);
  if (sites.empty()) {
    throw ConfigError("offload",
                      cat("the model has no parts whose activations could be offloaded: model=", config_.model.model,
                          ", offload=", join(config_.backend.offload, ",")),
                      "Give it sites, or leave activations out of offload");
  }
  std::vector<at::Tensor> weights;
  for (const parallel::ParamRow& row : table.rows()) weights.push_back(row.local);
  const std::string& path = config_.backend.offload_path;
  auto offload = std::make_unique<ActivationOffload>(
      path.empty() ? host_activations(device_) : file_activations(path, device_, bytes_of_buffer()), weights);
  for (model::Site* site : sites) offload->install(*site);
  notes_.push_back(cat("Offload: the activations of ", sites.size(), " parts of the model are ", offload->store().place(), ", ",
                       format_bytes(offload->store().memory_bytes()), " of host memory on each rank"));
  buffer_bytes_ += static_cast<int64_t>(offload->store().memory_bytes());
  return offload;
}

std::unique_ptr<WeightAverage> Offload::average(std::vector<OptimizerParameter> parameters) {
  if (!has_optimizer() && !has_weights()) return std::make_unique<HeldAverage>(config_.optimizer, std::move(parameters));
  const char* const holds = "moving averages of weights";
  auto offloaded = std::make_unique<OffloadedAverage>(config_.optimizer, std::move(parameters), plan(holds));
  if (has_optimizer()) note(holds, offloaded->store());
  return offloaded;
}

}  // namespace welkin::train
