// SPDX-License-Identifier: Apache-2.0
#include "bench/memory/memory_bench.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "bench/memory/pipeline_memory.h"
#include "bench/step/synthetic_config.h"
#include "config/schema/batch_plan.h"
#include "config/schema/choices.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/sample/dataset.h"
#include "observe/log/table.h"
#include "ops/base/autocast.h"
#include "parallel/comm/collectives.h"
#include "train/device/memory_limit.h"
#include "train/device/memory_report.h"
#include "train/rollout/curriculum.h"
#include "train/step/setup.h"

namespace welkin::bench {
namespace {

using parallel::Axis;

constexpr std::array<std::pair<const char*, parallel::AxisSet>, 4> kReportedAxes{
    {{"dp", parallel::kDp}, {"tp", Axis::Tp}, {"cp", Axis::Cp}, {"pp", Axis::Pp}}};
constexpr int64_t kCountOnly = int64_t{1} << 60;

bool is_split_over(const parallel::ParamRow& row, parallel::AxisSet axes) {
  return std::ranges::any_of(std::array{Axis::DpReplicate, Axis::DpShard, Axis::Tp, Axis::Cp},
                             [&](Axis axis) { return axes.contains(axis) && row.placements[axis].sharded(); });
}

std::string placement_text(const parallel::ParamRow& row, const parallel::Mesh& mesh) {
  std::vector<std::string> split, alike;
  for (const auto& [name, axes] : kReportedAxes) {
    if (mesh.size(axes) > 1) (is_split_over(row, axes) ? split : alike).emplace_back(name);
  }
  if (split.empty() && alike.empty()) return "whole, on one rank";
  if (split.empty()) return cat("alike on ", join(alike, " "));
  return cat("split over ", join(split, " "), alike.empty() ? "" : cat(", alike on ", join(alike, " ")));
}

int64_t held_by(const at::Tensor& tensor) { return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0; }

// Model, exchange and optimizer of a configuration, and one step without its update.
class MemoryRig {
 public:
  MemoryRig(const config::RunConfig& config, const train::Registries& registries, const parallel::World& world)
      : config_(synthetic_config(config)), registries_(registries), world_(world) {}

  HeldMemory measure() {
    if (config_.backend.memory_limit_gib == 0) train::limit_cpu_memory(kCountOnly);  // from here on tensors are counted
    try {
      build();
      if (setup_->pipeline) {
        count_steps();
      } else {
        own_.activations = count_activations();
        count_gradients();
      }
      count_placements();
    } catch (const std::exception&) {
      const train::KnownMemory known = train::known_memory(setup_.get(), /*buffers=*/0, /*has_buffers=*/true);
      throw train::explained(train::memory_error_in_flight(config_), known, config_);
    }
    gather();
    return std::move(report_);
  }

 private:
  void build() {
    const auto dataset = registries_.datasets.at(config_.data.dataset).open(config_, data::Split::Train);
    spec_ = dataset->spec();
    const train::SetupSource source{config_, registries_, spec_, c10::kCPU, world_.world_group()};
    layout_ = train::make_layout(train::make_mesh_groups(config_.parallel, world_), source);
    dataset_size_ = dataset->size();
    setup_ = train::make_setup(layout_, source, {.total_steps = 16, .steps_per_epoch = 16, .samples = dataset_size_});
  }

  int64_t optimizer_bytes_of(const std::string& parameter, const std::vector<train::NamedState>& states) const {
    int64_t bytes = 0;
    for (const train::NamedState& state : states) {
      if (state.name.ends_with(cat(".", parameter)) && state.name.find('.') == state.name.size() - parameter.size() - 1) {
        bytes += state.read ? 0 : held_by(state.value);
      }
    }
    return bytes;
  }

  void count_placements() {
    const parallel::Mesh& mesh = layout_.groups.mesh();
    const std::vector<train::NamedState> states = setup_->optimizer->states();
    // Gradients have buckets of their own only in this case. Otherwise they live in the buckets, or only pass through them.
    const config::BatchPlan batch = config::batch_plan(config_, layout_.replicas.size());
    const bool has_buckets = setup_->data_parallel->bytes_per_step() > 0 && !setup_->is_sharded() && batch.local > batch.micro &&
                             !config_.parallel.disable_broadcast_buffers;
    for (size_t i = 0; i < setup_->table.rows().size(); ++i) {
      const parallel::ParamRow& row = setup_->table.rows()[i];
      const std::string placement = placement_text(row, mesh);
      auto same = std::ranges::find(report_.placements, placement, &PlacedBytes::placement);
      if (same == report_.placements.end()) {
        same = report_.placements.insert(report_.placements.end(), PlacedBytes{.placement = placement, .held = {}});
      }
      int64_t elements = 1;
      for (const int64_t extent : row.global_shape) elements *= extent;
      same->parameters += elements;
      const HeldBytes held{.weights = row.held_bytes(),
                           .gradients = gradients_[i],
                           .optimizer = optimizer_bytes_of(row.name, states),
                           .exchange = has_buckets ? held_by(row.trained()) : 0};
      same->held += held;
      own_ += held;
    }
  }

  // Fields for the part of the samples that this rank reads; their values do not matter.
  at::Tensor fields(const data::ArraySpec& spec) const {
    std::vector<int64_t> shape = spec.shape;
    if (const std::optional<data::Region> region = layout_.shard.region()) {
      for (size_t d = 1; d < shape.size(); ++d) shape[d] = region->extent[d - 1];
    }
    shape.insert(shape.begin(), report_.batch_samples);
    return at::ones(shape, at::kFloat);
  }

  at::Tensor loss_of(const at::Tensor& input, const at::Tensor& target) const {
    const at::Tensor samples = at::arange(report_.batch_samples, at::kLong);
    const ops::AutocastGuard autocast(c10::kCPU, train::autocast_dtype(config_.precision.amp_mode));
    return setup_->losses(input, target, {.seed = config_.loop.seed, .step = setup_->counter, .sample = samples}).sum();
  }

  // Pipeline stages make no passes of the whole model, so their whole steps are measured.
  void count_steps() {
    const config::BatchPlan batch = config::batch_plan(config_, layout_.replicas.size());
    report_.batch_samples = batch.micro;
    report_.micro_batches = batch.micros();
    const data::SampleSpec longest = train::longest_sample(config_, spec_);
    StepHeld held = count_pipeline_steps(*setup_, config_, fields(longest.input), fields(longest.target), world_, dataset_size_);
    own_.activations = held.activations;
    gradients_ = std::move(held.gradients);
  }

  int64_t count_activations() {
    report_.batch_samples = config::batch_plan(config_, layout_.replicas.size()).micro;
    const data::SampleSpec longest = train::longest_sample(config_, spec_);
    const at::Tensor input = fields(longest.input), target = fields(longest.target);
    loss_of(input, target);  // memory that is kept from one step to the next is there from now on
    // A thread of the back end may free a buffer a little later, before or after, so the median of several counts is taken.
    std::array<int64_t, 5> counts{};
    for (int64_t& count : counts) {
      parallel::barrier(world_.world_group());
      const int64_t before = train::cpu_memory_allocated();
      const at::Tensor loss = loss_of(input, target);
      parallel::barrier(world_.world_group());
      count = train::cpu_memory_allocated() - before;
    }
    std::ranges::sort(counts);
    return counts[counts.size() / 2];
  }

  // Counts gradients by row, between two passes of a step or after the last one, whichever total is larger.
  void count_gradients() {
    const auto& rows = setup_->table.rows();
    gradients_.assign(rows.size(), 0);
    const config::BatchPlan batch = config::batch_plan(config_, layout_.replicas.size());
    const data::SampleSpec longest = train::longest_sample(config_, spec_);
    const at::Tensor input = fields(longest.input), target = fields(longest.target);
    for (const bool is_last : {false, true}) {
      if (!is_last && batch.local <= batch.micro) continue;
      setup_->data_parallel->backward(loss_of(input, target), is_last);
      std::vector<int64_t> now(rows.size());
      std::ranges::transform(rows, now.begin(), gradient_bytes_of);
      if (std::accumulate(now.begin(), now.end(), int64_t{0}) >
          std::accumulate(gradients_.begin(), gradients_.end(), int64_t{0})) {
        gradients_ = std::move(now);
      }
    }
  }

  void gather() {
    const parallel::Mesh& mesh = layout_.groups.mesh();
    std::vector<std::string> sizes;
    for (const auto& [name, axes] : kReportedAxes) sizes.push_back(cat(name, " ", mesh.size(axes)));
    if (setup_->is_sharded()) sizes.push_back(cat("shard ", config::name_of(config_.parallel.shard)));
    report_.layout = join(sizes, ", ");
    const at::Tensor own = at::tensor({own_.weights, own_.gradients, own_.optimizer, own_.exchange, own_.activations}, at::kLong);
    const parallel::Group& world_group = world_.world_group();
    const auto count = static_cast<size_t>(world_group.size());
    const at::Tensor all = parallel::all_gather(world_group, own, 0, parallel::Lengths(count, own.numel()));
    const auto* values = all.data_ptr<int64_t>();
    for (size_t rank = 0; rank < count; ++rank, values += own.numel()) {
      report_.ranks.push_back({.weights = values[0],
                               .gradients = values[1],
                               .optimizer = values[2],
                               .exchange = values[3],
                               .activations = values[4]});
      std::vector<std::string> place;
      for (const auto& [name, axes] : kReportedAxes) {
        if (mesh.size(axes) > 1) place.push_back(cat(name, " ", mesh.group_of(static_cast<int64_t>(rank), axes).place));
      }
      report_.places.push_back(join(place, ", "));
    }
  }

  config::RunConfig config_;
  const train::Registries& registries_;
  const parallel::World& world_;
  data::SampleSpec spec_;
  int64_t dataset_size_ = 0;
  train::Layout layout_;
  std::unique_ptr<train::TrainSetup> setup_;
  std::vector<int64_t> gradients_;  // bytes, by row
  HeldBytes own_;
  HeldMemory report_;
};

std::string held_text(int64_t bytes) { return format_bytes(static_cast<uint64_t>(bytes)); }

nlohmann::ordered_json held_json(const HeldBytes& held) {
  return {{"weights_bytes", held.weights},
          {"gradients_bytes", held.gradients},
          {"optimizer_bytes", held.optimizer},
          {"exchange_bytes", held.exchange}};
}

}  // namespace

HeldBytes& HeldBytes::operator+=(const HeldBytes& other) {
  weights += other.weights;
  gradients += other.gradients;
  optimizer += other.optimizer;
  exchange += other.exchange;
  activations += other.activations;
  return *this;
}

HeldMemory run_memory_bench(const config::RunConfig& config, const train::Registries& registries, const parallel::World& world) {
  return MemoryRig(config, registries, world).measure();
}

std::string held_memory_text(const HeldMemory& report) {
  using observe::Align;
  observe::Table placements({{"parameters of rank 0", Align::Left},
                             {"of the model", Align::Right},
                             {"weights", Align::Right},
                             {"gradients", Align::Right},
                             {"optimizer", Align::Right}});
  for (const PlacedBytes& row : report.placements) {
    placements.add_row({row.placement, cat(row.parameters), held_text(row.held.weights), held_text(row.held.gradients),
                        held_text(row.held.optimizer)});
  }
  observe::Table ranks({{"rank", Align::Right},
                        {"", Align::Left},
                        {"weights", Align::Right},
                        {"gradients", Align::Right},
                        {"optimizer", Align::Right},
                        {"exchange", Align::Right},
                        {"activations", Align::Right}});
  for (size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const HeldBytes& held = report.ranks[rank];
    ranks.add_row({cat(rank), report.places[rank], held_text(held.weights), held_text(held.gradients), held_text(held.optimizer),
                   held_text(held.exchange), held_text(held.activations)});
  }
  const std::string when = report.micro_batches > 0
                               ? cat("at most at once in a step of ", report.micro_batches, " micro-batches of ",
                                     report.batch_samples, report.batch_samples == 1 ? " sample" : " samples")
                               : cat("of ", report.batch_samples, " samples after the forward pass");
  return cat(report.layout, "; activations ", when, "\n", placements.text(), "\n", ranks.text());
}

void add_held_memory_json(nlohmann::ordered_json& json, const HeldMemory& report) {
  json["layout"] = report.layout;
  json["activation_samples"] = report.batch_samples;
  if (report.micro_batches > 0) json["micro_batches"] = report.micro_batches;
  for (const PlacedBytes& row : report.placements) {
    json["placements"].push_back({{"placement", row.placement}, {"parameters", row.parameters}});
    json["placements"].back().update(held_json(row.held));
  }
  for (size_t rank = 0; rank < report.ranks.size(); ++rank) {
    json["held"].push_back({{"rank", rank}, {"place", report.places[rank]}});
    json["held"].back().update(held_json(report.ranks[rank]));
    json["held"].back()["activations_bytes"] = report.ranks[rank].activations;
  }
}

}  // namespace welkin::bench
