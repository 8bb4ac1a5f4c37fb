// SPDX-License-Identifier: Apache-2.0
#include "plan/run_estimate.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "config/schema/batch_plan.h"
#include "config/schema/key.h"
#include "plan/backward_memory.h"
#include "plan/collective_traffic.h"
#include "plan/model_steps.h"

namespace welkin::plan {
namespace {

bool is_mixed(const config::RunConfig& config) { return config.precision.amp_mode != config::AmpMode::None; }

double bucket_bytes(const config::RunConfig& config) {
  constexpr double kBytesPerMb = 1 << 20;
  return static_cast<double>(config.parallel.bucket_cap_mb) * kBytesPerMb;
}

double local_parameters(const RunFacts& facts, int64_t tensor_parallel) {
  const auto split = static_cast<double>(facts.memory ? facts.memory->split_parameters : 0);
  return static_cast<double>(facts.cost.parameters) - split + split / static_cast<double>(tensor_parallel);
}

// Frozen parameters are assumed to be split as all others are.
double trained_parameters(const RunFacts& facts, int64_t tensor_parallel) {
  const auto all = static_cast<double>(facts.cost.parameters), frozen = static_cast<double>(facts.frozen_parameters);
  return frozen == 0 ? local_parameters(facts, tensor_parallel) : local_parameters(facts, tensor_parallel) * (1 - frozen / all);
}

// Recomputed parts make their copies anew in each run, one part after the other.
double weights_in_16_bits(const config::RunConfig& config, const RunFacts& facts, int64_t tensor_parallel) {
  const bool on_cpu = config.loop.device == config::DeviceChoice::Cpu;
  if (on_cpu && facts.memory && (facts.widens_matmuls || !facts.memory->has_cast_weights)) return 0;
  const int64_t gone = facts.memory ? facts.memory->checkpointed_weights - facts.memory->recomputed_weights : 0;
  return local_parameters(facts, tensor_parallel) - static_cast<double>(gone) / static_cast<double>(tensor_parallel);
}

double activation_bytes(const config::RunConfig& config, const model::SavedValues& kept) {
  const auto tp = static_cast<double>(config.parallel.tensor_parallel);
  const auto cp = static_cast<double>(config.parallel.context_parallel);
  const bool on_cpu = config.loop.device == config::DeviceChoice::Cpu;
  const double narrow = narrow_bytes(config);
  const auto blocks =
      static_cast<double>(config.parallel.spatial.size());  // split all values that a forward pass keeps, but gathered keys
  const double token_parts = cp * (config.parallel.sequence_parallel ? tp : 1);
  const bool gathers_keys = config.parallel.context_mode == config::ContextMode::AllGather;
  const double keys = kept.keys * narrow / (tp * (gathers_keys ? 1 : cp * blocks));
  const double whole = kept.ends + (on_cpu ? 0 : kept.joined + kept.normed_end);
  const double tokens = (kept.stream * kWideBytes + (kept.shared + (on_cpu ? 0 : kept.normed)) * narrow) / token_parts;
  return (whole * narrow + tokens + kept.inner * narrow / (tp * cp)) / blocks + keys;
}

std::optional<int64_t> samples_of_run(const config::RunConfig& config, const RunFacts& facts) {
  if (config.loop.num_iters > 0) return config.loop.num_iters * config.loop.global_batch_size;
  if (!facts.samples_per_epoch) return std::nullopt;
  return config.loop.num_epochs * *facts.samples_per_epoch;
}

// Ranks with parts of one sample. Each of their gradients is a partial sum: one exchange goes over them and the replicas.
double ranks_of_sample(const config::ParallelConfig& parallel) {
  const bool is_sharded = parallel.context_io == config::ContextIo::Sharded;
  return static_cast<double>(parallel.spatial.size() * (is_sharded ? parallel.context_parallel : 1));
}

// One rank's share of the training state (key `shard`): the fractions of gradients, optimizer states and weights that it holds,
// and how often whole weights or gradients are sent in a step.
struct Sharing {
  double ranks = 1;  // number of ranks that share one state
  double weights = 1, gradients = 1, optimizer = 1;
  double reduces = 1, gathers = 1;
  double kept_gathers = 0;  // gathers in which weights kept for the whole pass take no part
};

Sharing sharing_of(const config::RunConfig& config, double replicas) {
  const config::ParallelConfig& parallel = config.parallel;
  Sharing sharing;
  if (parallel.shard == config::ShardStage::None) return sharing;
  const double number = std::strtod(parallel.shard_group.c_str(), nullptr);  // no number: all ranks, or a node of unknown size
  sharing.ranks = number >= 1 ? number : replicas;
  sharing.ranks *= ranks_of_sample(parallel);
  const auto micros = static_cast<double>(config::batch_plan(config).micros());
  const StagePasses of_micro = stage_passes(config);
  const double passes = micros * of_micro.backward;
  sharing.optimizer = 1 / sharing.ranks;
  if (parallel.shard == config::ShardStage::Optimizer) return sharing;
  sharing.gradients = 1 / sharing.ranks;
  sharing.reduces = passes;
  if (parallel.shard == config::ShardStage::Gradients) return sharing;
  sharing.weights = 1 / sharing.ranks;
  sharing.gathers = parallel.reshard_after_forward ? micros * of_micro.forward + passes : 1;
  if (parallel.reshard_after_forward) sharing.kept_gathers = passes;
  return sharing;
}

// Bytes of a gathered weight, on average: weights of matmuls and convolutions may be sent in 16 bits.
double gathered_bytes(const config::RunConfig& config, const model::ModelCost& cost) {
  const config::ParallelConfig& parallel = config.parallel;
  if (parallel.shard == config::ShardStage::None || parallel.shard_gather_dtype == config::GatherDtype::Fp32) return kWideBytes;
  int64_t weights = 0;
  for (const model::LayerCost& layer : cost.layers) weights += layer.weights;
  return kWideBytes - 2 * static_cast<double>(weights) / static_cast<double>(cost.parameters);
}

// The block or layer of a name: "blocks.3" of "blocks.3.attn.q".
std::string_view unit_of(const model::LayerCost& layer) {
  const std::string_view name = layer.name;
  const size_t first = name.find('.');
  return name.substr(0, first == std::string_view::npos ? first : name.find('.', first + 1));
}

std::map<std::string_view, double> parameters_of_units(const model::ModelCost& cost) {
  std::map<std::string_view, double> units;
  for (const model::LayerCost& layer : cost.layers) units[unit_of(layer)] += static_cast<double>(layer.parameters);
  return units;
}

// Parameters gathered together if weights are sharded: each block and layer, and one set for the whole pass, which has the
// parameters of no block and of blocks that are too small (parallel/sharding/weight_units.cpp).
struct GatheredTogether {
  double largest = 0;  // parameters of the largest block or layer
  double whole_pass = 0;
};

GatheredTogether gathered_together(const model::ModelCost& cost) {
  constexpr double kSmallestPart = 10;  // as in weight_units.cpp
  const std::map<std::string_view, double> units = parameters_of_units(cost);
  GatheredTogether found{.whole_pass = static_cast<double>(cost.parameters)};
  for (const auto& [name, parameters] : units) found.largest = std::max(found.largest, parameters);
  for (const auto& [name, parameters] : units) {
    if (kSmallestPart * parameters >= found.largest) found.whole_pass -= parameters;
  }
  return found;
}

// Bytes on this rank: whole gradients; activations of a pass; weights in 16 bits that a pass keeps until its backward pass.
struct BytesOfPass {
  double gradients = 0, activations = 0, casts = 0;
};

// The peak of a step with sharded training state. A layer's activations are taken as its operands and results; parameters
// outside layers come last.
BackwardPeak worst_moment(const config::RunConfig& config, const RunFacts& facts, const Sharing& sharing,
                          const BytesOfPass& bytes, double held) {
  const double gradients = bytes.gradients, activations = bytes.activations;
  const bool has_passes_before = config::batch_plan(config).micros() > 1 || stage_passes(config).backward > 1;
  const bool reduces_each = sharing.gradients < 1;
  BackwardPass pass{.layers = {},
                    .ranks = sharing.ranks,
                    .bucket_bytes = bucket_bytes(config),
                    .ends_with_units = sharing.weights < 1,
                    .adds_up = has_passes_before && !reduces_each,
                    .has_pieces = has_passes_before && reduces_each,
                    .travelling = config.parallel.compress_gradients == config::GradientDtype::Same ? 1.0 : 0.5,
                    .is_received = config.loop.device == config::DeviceChoice::Cpu};
  double in_layers = 0, values = 0;
  for (const model::LayerCost& layer : facts.cost.layers) {
    in_layers += static_cast<double>(layer.parameters);
    values += layer.activation_bytes;
  }
  const auto all = static_cast<double>(facts.cost.parameters);
  pass.layers.push_back(
      {.gradients = gradients * (all - in_layers) / all, .activations = values > 0 ? 0 : activations, .begins_unit = true});
  std::string_view before;
  for (const model::LayerCost& layer : facts.cost.layers) {
    const std::string_view unit = unit_of(layer);
    pass.layers.push_back({.gradients = gradients * static_cast<double>(layer.parameters) / all,
                           .activations = (values > 0 ? activations * layer.activation_bytes / values : 0) +
                                          (in_layers > 0 ? bytes.casts * static_cast<double>(layer.parameters) / in_layers : 0),
                           .begins_unit = unit != before});
    before = unit;
  }
  const BackwardPeak last = backward_peak(pass);
  const BackwardPeak earlier{.gradients = pass.adds_up      ? gradients
                                          : pass.has_pieces ? gradients / sharing.ranks
                                                            : 0,
                             .activations = activations * held + bytes.casts};
  return earlier.sum() > last.sum() ? earlier : last;
}

std::vector<MemoryPart> memory_parts(const config::RunConfig& config, const RunFacts& facts, const RunEstimate& estimate,
                                     const StageFacts& stage) {
  const double parameters = local_parameters(facts, estimate.tensor_parallel) * stage.parameters;
  const double trained = trained_parameters(facts, estimate.tensor_parallel) * stage.trained;
  const double replicas = static_cast<double>(estimate.world_size / config.parallel.model_size());
  const auto local_batch = static_cast<double>(config::batch_plan(config).local);
  const Sharing sharing = sharing_of(config, replicas);
  const bool is_shared = estimate.shares_state;
  const model::SavedValues most = facts.memory ? facts.memory->kept + facts.memory->again : model::SavedValues();
  const double of_pass = static_cast<double>(estimate.forward_batch) * activation_bytes(config, most) * stage.flops;
  const double narrow = is_mixed(config) ? 2 * weights_in_16_bits(config, facts, estimate.tensor_parallel) * stage.parameters : 0;
  const bool frees_casts = is_shared && config.loop.device == config::DeviceChoice::Cpu;
  BackwardPeak moment{.gradients = kWideBytes * trained, .activations = of_pass * stage.held};
  if (is_shared) {
    const BytesOfPass bytes{.gradients = kWideBytes * trained, .activations = of_pass, .casts = frees_casts ? narrow : 0};
    moment = worst_moment(config, facts, sharing, bytes, stage.held);
  }
  // A message between stages is taken to be as large as the model's input. A pass in flight holds its input, a copy beside the
  // loader's, a message that has just arrived, and the next one, whose receive is posted ahead. Members of an ensemble make one
  // pass together.
  constexpr double kMessages = 2;
  const bool is_piped = config.parallel.pipeline_parallel > 1;
  const auto members = static_cast<double>(estimate.ensemble_members);
  const double under_way = members * stage.held * static_cast<double>(config.parallel.chunks());
  const double begun = stage.inputs_held > 0 ? stage.inputs_held : under_way;
  const double copies = is_piped ? begun + kMessages * members : 0;
  moment.activations += static_cast<double>(estimate.forward_batch * facts.input_values) * copies * narrow_bytes(config) /
                        static_cast<double>(config.parallel.spatial.size());
  std::vector<MemoryPart> parts{
      {"weights", kWideBytes * parameters * sharing.weights},
      {"gradients", moment.gradients},
      {"optimizer", kWideBytes * facts.optimizer_states * trained * sharing.optimizer},
      {"batches in the loader", static_cast<double>(config.data.prefetch_depth + 1) * local_batch * kWideBytes *
                                    static_cast<double>(facts.sample_values) /
                                    static_cast<double>(config.parallel.spatial.size())},
  };
  if (facts.memory) {
    parts.insert(parts.begin() + 3, {"activations", moment.activations});
    parts.push_back({"constants", kWideBytes * static_cast<double>(facts.memory->constants) * stage.parameters});
  }
  if (config.optimizer.ema_decay > 0) parts.insert(parts.begin() + 3, {"moving average of weights", kWideBytes * parameters});
  if (narrow > 0 && !frees_casts) parts.insert(parts.begin() + 1, {"weights in 16 bits", narrow});
  if (sharing.weights < 1) {
    const double units = 1 + static_cast<double>(config.parallel.shard_prefetch);
    const double tp = static_cast<double>(estimate.tensor_parallel);
    const GatheredTogether together = gathered_together(facts.cost);
    const double at_work = (units * together.largest + together.whole_pass) / tp;
    parts.push_back({"weights at work", kWideBytes * (config.parallel.reshard_after_forward ? at_work : parameters)});
  }
  if (moment.under_way > 0) parts.push_back({"gradients under way", moment.under_way});
  const bool is_rounded = config.parallel.shard_gather_dtype != config::GatherDtype::Fp32;
  if (is_shared && is_rounded && sharing.weights == 1)
    parts.push_back({"weights as they are updated", kWideBytes * trained / sharing.ranks});
  // With a single pass gradients go directly into the buckets.
  const config::BatchPlan batch = config::batch_plan(config);
  const bool has_passes = batch.local > batch.micro || stage_passes(config).backward > 1;
  const bool adds_up_outside = has_passes && !config.parallel.disable_broadcast_buffers;
  const bool is_exchanged = replicas * ranks_of_sample(config.parallel) > 1 && !config.parallel.noddp;
  if (is_exchanged && !is_shared && adds_up_outside) {
    parts.push_back({"buckets of gradients", kWideBytes * trained});
  }
  return parts;
}

// States leave the memory, and are read and written once a step. Activations of all parts but two leave it in every pass (in a
// pipeline: of all micro-batches in flight). Each kind uses three buffers. Two units of weights stay, and weights of no unit.
// Weights are read for the forward and the backward pass, and read and written for the update.
void offload(const config::RunConfig& config, const StageFacts& stage, RunEstimate& estimate) {
  const config::BackendConfig& backend = config.backend;
  constexpr double kBuffers = 3, kReadAndWritten = 2, kPartsAtWork = 2, kBytesPerMib = 1 << 20;
  const auto has = [&](const char* what) { return std::ranges::find(backend.offload, what) != backend.offload.end(); };
  const auto passes = static_cast<double>(config::batch_plan(config).micros());
  const auto num_parts = static_cast<double>(parameters_of_units(estimate.cost).size()) * stage.parameters * stage.held;
  const Sharing sharing = sharing_of(config, static_cast<double>(estimate.world_size / config.parallel.model_size()));
  double buffers = 0, travels = 0;
  for (MemoryPart& part : estimate.memory) {
    const bool is_state = part.name == "optimizer" || part.name == "moving average of weights";
    double gone = 0;
    if (is_state && has("optimizer")) gone = part.bytes;
    if (part.name == "activations" && has("activations") && num_parts > kPartsAtWork) {
      gone = part.bytes * (1 - kPartsAtWork / num_parts);
    }
    const bool is_weights = part.name == "weights" && has("parameters");
    if (is_weights) {
      const GatheredTogether units = gathered_together(estimate.cost);
      const double whole = kWideBytes * (units.whole_pass * stage.parameters + kPartsAtWork * units.largest);
      // A rank's pieces of the gathered unit, of prefetched units, and of one that is read.
      const double at_once = 2 + static_cast<double>(config.parallel.shard_prefetch);
      const double stays = sharing.weights < 1 ? kWideBytes * at_once * units.largest * sharing.weights : whole;
      gone = std::max(0.0, part.bytes - stays / static_cast<double>(estimate.tensor_parallel));
    }
    part.bytes -= gone;
    estimate.offloaded_bytes += gone;
    travels += kReadAndWritten * gone * (is_state ? 1 : is_weights ? passes + 1 : passes / stage.held);
    if (!is_weights) buffers += kBuffers * std::min(gone, backend.offload_buffer_mib * kBytesPerMib);
  }
  std::erase_if(estimate.memory, [](const MemoryPart& part) { return part.bytes == 0 && part.name != "optimizer"; });
  if (!backend.offload_path.empty()) estimate.disk_bytes = travels;
  if (buffers > 0 && config.loop.device == config::DeviceChoice::Cpu) {
    estimate.memory.push_back({"buffers of the offload", buffers});
  }
}

// The replay buffer holds the whole input of a step per state. On a CPU the host's memory is the run's.
void add_replay(const config::RunConfig& config, const RunFacts& facts, RunEstimate& estimate) {
  if (!config::has_effect(config::key_at("loss.replay_buffer"), config)) return;
  const auto states = static_cast<double>(config.loss.replay_buffer * config::batch_plan(config).local);
  estimate.replay_bytes = kWideBytes * states * static_cast<double>(facts.input_values) / ranks_of_sample(config.parallel);
  if (config.loop.device == config::DeviceChoice::Cpu && estimate.replay_bytes > 0) {
    estimate.memory.push_back({"replay buffer", estimate.replay_bytes});
  }
}

// Bytes that a rank sends in a step.
double reduced_bytes(const config::RunConfig& config, const RunFacts& facts, const StageFacts& stage) {
  const double replicas = static_cast<double>(facts.world_size / config.parallel.model_size());
  const Sharing sharing = sharing_of(config, replicas);
  const double tied = kWideBytes * stage.tied * sharing.optimizer;  // of pieces, if ranks share them
  if (config.parallel.noddp) return tied;
  const bool is_shared = config.parallel.shard != config::ShardStage::None;
  const double ranks = is_shared ? sharing.ranks : replicas * ranks_of_sample(config.parallel);
  const double trained = trained_parameters(facts, config.parallel.tensor_parallel) * stage.trained;
  const double stays =
      gathered_together(facts.cost).whole_pass * stage.parameters / static_cast<double>(config.parallel.tensor_parallel);
  const double gathered = sharing.gathers * trained - sharing.kept_gathers * stays;
  return tied + (ranks - 1) / ranks * (sharing.reduces * kWideBytes * trained + gathered * gathered_bytes(config, facts.cost));
}

}  // namespace

double RunEstimate::memory_bytes() const {
  double sum = 0;
  for (const MemoryPart& part : memory) sum += part.bytes;
  return sum;
}

std::optional<double> RunEstimate::run_flops() const {
  if (!samples) return std::nullopt;
  return static_cast<double>(*samples) * cost.train_flops * run_share;
}

std::optional<double> RunEstimate::device_hours() const {
  if (!run_seconds) return std::nullopt;
  return *run_seconds * static_cast<double>(world_size) / 3600;
}

RunEstimate estimate_run(const config::RunConfig& config, const RunFacts& facts_of_step) {
  const RunFacts facts = of_all_steps(config, facts_of_step);
  RunEstimate estimate{.cost = facts.cost,
                       .world_size = facts.world_size,
                       .tensor_parallel = config.parallel.tensor_parallel,
                       .context_parallel = config.parallel.context_parallel,
                       .pipeline_parallel = config.parallel.pipeline_parallel,
                       .blocks = config.parallel.spatial.size(),
                       .global_batch = config.loop.global_batch_size,
                       .samples = samples_of_run(config, facts),
                       .model_steps = model_steps(config),
                       .ensemble_members = ensemble_members(config),
                       .run_share = run_share(config)};
  const config::BatchPlan batch = config::batch_plan(config);
  estimate.forward_batch = batch.micro;
  estimate.idle = facts.idle;
  estimate.micro_batches = batch.micros();
  estimate.exchanges_each_pass =
      config.parallel.shard == config::ShardStage::Gradients || config.parallel.shard == config::ShardStage::Full;
  estimate.bucket_bytes = bucket_bytes(config);
  estimate.message_bytes = facts.message_values * static_cast<double>(batch.micro) * narrow_bytes(config);
  estimate.exchange_leaves_node = facts.exchange_leaves_node;
  estimate.stages_leave_node = facts.stages_leave_node;
  estimate.shares_state = config.parallel.shard != config::ShardStage::None;
  estimate.step_flops = facts.cost.train_flops * static_cast<double>(estimate.global_batch);
  if (facts.memory) estimate.recompute_flops = facts.memory->recompute_flops * static_cast<double>(estimate.global_batch);
  const std::vector<StageFacts> whole{{}};
  const std::vector<StageFacts>& stages = facts.stages.empty() ? whole : facts.stages;
  for (size_t i = 0; i < stages.size(); ++i) {
    RunEstimate of_rank = estimate;
    of_rank.memory = memory_parts(config, facts, estimate, stages[i]);
    of_rank.collectives = collectives_of(config, facts, stages[i]);
    offload(config, stages[i], of_rank);
    of_rank.stage = static_cast<int64_t>(i);
    of_rank.reduced_bytes = std::max(estimate.reduced_bytes, reduced_bytes(config, facts, stages[i]));
    if (i > 0 && of_rank.memory_bytes() <= estimate.memory_bytes()) {
      estimate.reduced_bytes = of_rank.reduced_bytes;
    } else {
      estimate = std::move(of_rank);
    }
  }
  add_replay(config, facts, estimate);
  if (facts.flops_per_second) {
    const double all = *facts.flops_per_second * static_cast<double>(facts.world_size) * (1 - facts.idle);
    const double flops_of_sample = facts.cost.train_flops + (facts.memory ? facts.memory->recompute_flops : 0);
    estimate.step_seconds = (estimate.step_flops + estimate.recompute_flops) / all;
    if (estimate.samples)
      estimate.run_seconds = static_cast<double>(*estimate.samples) * flops_of_sample * estimate.run_share / all;
  }
  return estimate;
}

}  // namespace welkin::plan
