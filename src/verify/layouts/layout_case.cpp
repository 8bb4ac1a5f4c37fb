// SPDX-License-Identifier: Apache-2.0
#include "verify/layouts/layout_case.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "core/text.h"
#include "parallel/pipeline/schedule.h"
#include "verify/layouts/covering_rows.h"

namespace welkin::verify {
namespace {

using config::PipelineSchedule;
using parallel::ContextMode;
using parallel::GradientDtype;

constexpr size_t kNumOptions = 11, kNumSchedules = 4;
using OptionLevels = std::array<size_t, kNumOptions>;  // of the options below, in their order

// sequence parallel, context mode, joint qkv, micro-batches, dropout, rank order, sharded input and output, gradients' type,
// shared training state, weights of points, steps of the model and members
constexpr OptionLevels kLevels{2, 3, 2, 2, 2, 2, 2, 3, 4, 2, 3};

int64_t ranks_of(const parallel::MeshSizes& sizes) {
  return sizes.dp_replicate * sizes.tp * sizes.cp * sizes.pp * sizes.d * sizes.h * sizes.w;
}

LayoutCase case_of(const parallel::MeshSizes& sizes, const OptionLevels& levels) {
  LayoutCase c{.sizes = sizes};
  c.batch = ranks_of(sizes) * ((c.batch + ranks_of(sizes) - 1) / ranks_of(sizes));
  c.options.sequence_parallel = levels[0] == 1;
  c.options.context_mode = std::array{ContextMode::AllGather, ContextMode::Ring, ContextMode::AllToAll}[levels[1]];
  c.joint_qkv = levels[2] == 1;
  c.num_micro = levels[3] == 1 ? 2 : 1;
  c.dropout = levels[4] == 1 ? 0.1 : 0.0;
  c.order = levels[5] == 1 ? "cp-tp-dp" : "tp-cp-dp";
  c.options.sharded_io = levels[6] == 1;
  c.comm_dtype = std::array{GradientDtype::Same, GradientDtype::Bf16, GradientDtype::Fp16}[levels[7]];
  c.shard = static_cast<config::ShardStage>(levels[8]);
  c.weights = levels[9] == 1;
  if (levels[10] == 1) c.steps = sizes.pp > 1 && levels[7] == 2 ? 3 : 2;
  if (levels[10] == 2) c.members = 2, c.steps = levels[3] == 1 ? 2 : 1;
  if (sizes.pp > 1) {
    c.depth = 4;
    c.num_micro *= 2;
    c.schedule =
        std::array{PipelineSchedule::OneForwardOneBackward, PipelineSchedule::Interleaved, PipelineSchedule::GPipe}[levels[1]];
    if (sizes.pp * c.chunks() > c.depth) c.schedule = PipelineSchedule::GPipe;
    if (levels[1] == 2 && levels[5] == 1) c.schedule = PipelineSchedule::ZeroBubble;
  }
  return c;
}

// Options without a meaning on this mesh, or for a model without tokens, get their first level, so that no case comes twice.
LayoutCase canonical(LayoutCase c, parallel::AxisSet axes) {
  if (!axes.contains(parallel::Axis::Cp)) {
    c.options.sequence_parallel = c.joint_qkv = false;
    c.dropout = 0.0;
    c.steps = c.members = 1;
  }
  if (c.sizes.tp == 1) c.options.sequence_parallel = false;
  const bool splits_tokens = c.sizes.cp > 1 || (c.num_blocks() > 1 && axes.contains(parallel::Axis::Cp));
  if (!splits_tokens) c.options.context_mode = ContextMode::AllGather;
  if (c.sizes.cp == 1 || c.num_blocks() > 1) c.options.sharded_io = false;
  if (c.sizes.w > 1 && c.dropout > 0) {  // what plans of tokens refuse there
    c.options.sequence_parallel = false;
    c.options.context_mode = ContextMode::AllToAll;
  }
  if (c.exchange_size() == 1) c.shard = config::ShardStage::None;
  if (c.shard == config::ShardStage::None) c.shard_replicas = 1;
  if (c.sizes.pp > 1) {
    c.comm_dtype = GradientDtype::Same;  // passes of whole models decide which errors narrow types may have
    // A U-Net has no linear layers, whose gradients could wait.
    const bool lets_wait = c.schedule == PipelineSchedule::ZeroBubble && axes.contains(parallel::Axis::Cp);
    if (c.schedule == PipelineSchedule::ZeroBubble && !lets_wait) c.schedule = PipelineSchedule::GPipe;
    const int64_t micros = std::min(c.num_micro, c.batch / c.sizes.dp_replicate);
    if (!parallel::problem_of(c.schedule, {c.sizes.pp, micros, c.chunks(), c.steps}).what.empty())
      c.schedule = PipelineSchedule::GPipe;
  }
  // The bound of narrow types needs the gradients before the exchange. They are not kept if gradients are shared out.
  const bool keeps = c.shard == config::ShardStage::None || c.shard == config::ShardStage::Optimizer;
  if (c.exchange_size() == 1 || !keeps) c.comm_dtype = GradientDtype::Same;
  if (c.sizes.tp == 1 || c.sizes.cp == 1) c.order = "tp-cp-dp";
  return c;
}

std::vector<OptionLevels> full_product() {
  std::vector<OptionLevels> all{{}};
  for (size_t option = 0; option < kNumOptions; ++option) {
    const std::vector<OptionLevels> shorter = std::exchange(all, {});
    for (const OptionLevels& levels : shorter) {
      for (size_t level = 0; level < kLevels[option]; ++level) {
        all.push_back(levels);
        all.back()[option] = level;
      }
    }
  }
  return all;
}

// Settings with all combinations of the levels of `strength` options.
std::vector<OptionLevels> covering_settings(size_t strength) {
  const std::vector<OptionLevels> all = full_product();
  std::vector<std::vector<int>> rows;
  for (const OptionLevels& levels : all) rows.emplace_back(levels.begin(), levels.end());
  std::vector<OptionLevels> chosen;
  for (const size_t row : covering_rows(rows, strength)) chosen.push_back(all[row]);
  return chosen;
}

// Meshes along axes of the plan and dp. Blocks are cut along each axis alone, and along several: 1x1x2, 2x1x1, 1x2x2, 2x2x2;
// fields along two of them. Where tokens are cut, rows of the field are so by any number of ranks: these are runs of tokens.
std::vector<parallel::MeshSizes> meshes_of(int64_t world_size, parallel::AxisSet axes) {
  using parallel::Axis;
  std::vector<std::array<int64_t, 3>> blocks{{1, 1, 1}};
  const auto is_cuttable = [&axes](const std::array<int64_t, 3>& cut) {
    return (cut[0] == 1 || axes.contains(Axis::D)) && (cut[1] == 1 || axes.contains(Axis::H)) &&
           (cut[2] == 1 || axes.contains(Axis::W));
  };
  for (int64_t ranks = 2; ranks <= world_size; ++ranks) {
    std::vector<std::array<int64_t, 3>> cuts{{1, 1, ranks}, {ranks, 1, 1}, {1, 2, ranks / 2}, {2, 2, ranks / 4}};
    if (!axes.contains(Axis::W)) cuts = {{1, ranks, 1}};
    if (axes.contains(Axis::Cp)) cuts = {{1, ranks, 1}, {1, 2, ranks / 2}, {1, 1, std::min<int64_t>(ranks, 2)}};
    for (const std::array<int64_t, 3>& cut : cuts) {
      const bool is_new = std::ranges::find(blocks, cut) == blocks.end();
      if (is_new && is_cuttable(cut) && cut[0] * cut[1] * cut[2] == ranks) blocks.push_back(cut);
    }
  }
  std::vector<parallel::MeshSizes> meshes;
  for (int64_t tp = 1; tp <= world_size; ++tp) {
    for (int64_t cp = 1; tp * cp <= world_size; ++cp) {
      if ((tp > 1 && !axes.contains(parallel::Axis::Tp)) || (cp > 1 && !axes.contains(parallel::Axis::Cp))) continue;
      for (const auto& [d, h, w] : blocks) {
        const int64_t model_size = tp * cp * d * h * w;
        const bool splits_blocks = cp == 2 && d * h * w == 2;  // stands for all such meshes
        if (world_size % model_size != 0 || (cp > 1 && d * h * w > 1 && !splits_blocks)) continue;
        const int64_t rest = world_size / model_size;
        meshes.push_back({.dp_replicate = rest, .tp = tp, .cp = cp, .h = h, .w = w, .d = d});
        for (const int64_t pp : {2, 4}) {
          // A cut along w stands for all cuts of boxes.
          const bool stands_for_all = d * h == 1 || axes.contains(parallel::Axis::Cp) || !axes.contains(parallel::Axis::W);
          if (rest % pp != 0 || !stands_for_all || !axes.contains(parallel::Axis::Pp)) continue;
          meshes.push_back({.dp_replicate = rest / pp, .tp = tp, .cp = cp, .pp = pp, .h = h, .w = w, .d = d});
        }
      }
    }
  }
  return meshes;
}

// A value below `limit`, which is small. The standard's distributions differ from one library to the next.
size_t draw(std::mt19937_64& random, size_t limit) { return random() % limit; }

LayoutCase drawn_case(std::mt19937_64& random, const std::vector<parallel::MeshSizes>& meshes) {
  const parallel::MeshSizes& sizes = meshes[draw(random, meshes.size())];
  OptionLevels levels{};
  for (size_t option = 0; option < kNumOptions; ++option) levels[option] = draw(random, kLevels[option]);
  LayoutCase c = case_of(sizes, levels);
  const auto schedule = static_cast<PipelineSchedule>(draw(random, kNumSchedules));
  const auto micros = int64_t{1} << draw(random, 3);
  std::vector<int64_t> replicas{1};
  for (int64_t n = 2; n < sizes.dp_replicate; ++n) {
    if (sizes.dp_replicate % n == 0) replicas.push_back(n);
  }
  c.shard_replicas = replicas[draw(random, replicas.size())];
  c.num_micro = micros;
  if (sizes.pp == 1) return c;
  c.schedule = schedule;
  if (sizes.pp * c.chunks() > c.depth) c.depth = 8;
  return c;
}

bool same_mesh(const LayoutCase& a, const LayoutCase& b) {
  const auto of = [](const parallel::MeshSizes& s) { return std::tie(s.dp_replicate, s.tp, s.cp, s.pp, s.d, s.h, s.w); };
  return of(a.sizes) == of(b.sizes);
}

// What a layout chooses: sizes of the axes, then options. -1 for those without a meaning on its mesh.
std::vector<int> choices_of(const LayoutCase& c) {
  const parallel::MeshSizes& sizes = c.sizes;
  const auto blocks = static_cast<int>((sizes.d * 1000 + sizes.h) * 1000 + sizes.w);
  std::vector<int> row{blocks};
  for (const int64_t size : {sizes.dp_replicate, sizes.tp, sizes.cp, sizes.pp, c.num_micro, c.depth, c.steps, c.members})
    row.push_back(static_cast<int>(size));
  for (const bool is_on : {c.options.sequence_parallel, c.options.sharded_io, c.joint_qkv, c.dropout > 0, c.weights})
    row.push_back(is_on ? 1 : 0);
  row.push_back(sizes.cp * c.num_blocks() > 1 ? static_cast<int>(c.options.context_mode) : -1);
  row.push_back(static_cast<int>(c.schedule));
  row.push_back(static_cast<int>(c.comm_dtype));
  row.push_back(static_cast<int>(c.shard));
  row.push_back(sizes.tp == 1 || sizes.cp == 1 ? -1 : c.order == "tp-cp-dp" ? 0 : 1);
  return row;
}

// One case of each mesh, the settings in turns, and more of them until they have all pairs of sizes and options, by mesh.
std::vector<LayoutCase> with_all_pairs(const std::vector<LayoutCase>& cases) {
  std::vector<std::vector<int>> rows;
  std::vector<size_t> chosen;
  for (size_t begin = 0; begin < cases.size(); begin = rows.size()) {
    while (rows.size() < cases.size() && same_mesh(cases[begin], cases[rows.size()]))
      rows.push_back(choices_of(cases[rows.size()]));
    chosen.push_back(begin + chosen.size() % (rows.size() - begin));
  }
  chosen = covering_rows(rows, 2, std::move(chosen));
  std::ranges::sort(chosen);
  std::vector<LayoutCase> of_pairs;
  for (const size_t row : chosen) of_pairs.push_back(cases[row]);
  return of_pairs;
}

// The layouts that settings make on one mesh.
std::vector<LayoutCase> cases_of(const parallel::MeshSizes& sizes, const std::vector<OptionLevels>& settings,
                                 parallel::AxisSet axes) {
  std::vector<LayoutCase> cases;
  std::set<std::string> seen;
  for (const OptionLevels& levels : settings) {
    LayoutCase c = canonical(case_of(sizes, levels), axes);
    if (seen.insert(c.text()).second) cases.push_back(std::move(c));
  }
  return cases;
}

// Two settings for each mesh, in turns.
std::vector<LayoutCase> some_cases(const std::vector<parallel::MeshSizes>& meshes, parallel::AxisSet axes) {
  const std::vector<OptionLevels> settings = covering_settings(2);
  std::vector<LayoutCase> cases;
  size_t next = 0;
  for (const parallel::MeshSizes& sizes : meshes) {
    const OptionLevels& first = settings[next++ % settings.size()];
    std::ranges::move(cases_of(sizes, {first, settings[next++ % settings.size()]}, axes), std::back_inserter(cases));
  }
  return cases;
}

// An option may count only beside two others, as 16-bit gradients do with a copy of the weights and an exchange. So all
// combinations of four settings make all pairs of layouts.
std::vector<LayoutCase> pairs_of_cases(const std::vector<parallel::MeshSizes>& meshes, parallel::AxisSet axes, bool for_each_mesh,
                                       const std::function<bool(const LayoutCase&)>& is_refused) {
  const std::vector<OptionLevels> settings = covering_settings(4);
  std::vector<LayoutCase> cases, refused;
  for (const parallel::MeshSizes& sizes : meshes) {
    std::vector<LayoutCase> of_mesh = cases_of(sizes, settings, axes);
    const LayoutCase first = of_mesh.front();
    if (is_refused) std::erase_if(of_mesh, is_refused);
    if (of_mesh.empty()) refused.push_back(first);  // to be named once
    std::ranges::move(for_each_mesh ? with_all_pairs(of_mesh) : of_mesh, std::back_inserter(cases));
  }
  if (!for_each_mesh) cases = with_all_pairs(cases);
  std::ranges::move(refused, std::back_inserter(cases));
  return cases;
}

}  // namespace

parallel::Mesh LayoutCase::mesh() const {
  parallel::MeshSizes split = sizes;
  if (shard != config::ShardStage::None) {
    split.dp_shard = sizes.dp_replicate / shard_replicas;
    split.dp_replicate = shard_replicas;
  }
  std::string axes = order;
  if (num_blocks() > 1) axes.insert(axes.rfind("dp"), "w-h-d-");
  if (sizes.pp > 1) axes += "-pp";
  return {axes, split};
}

std::string LayoutCase::text() const {
  std::string out = cat("dp ", sizes.dp_replicate, ", tp ", sizes.tp, ", cp ", sizes.cp);
  if (num_blocks() > 1) out += cat(", spatial ", sizes.d, "x", sizes.h, "x", sizes.w);
  if (sizes.pp > 1) out += cat(", pp ", sizes.pp, " ", config::name_of(schedule));
  if (sizes.tp > 1 && sizes.cp > 1) out += cat(" (", order, ")");
  if (options.sequence_parallel) out += ", sequence parallel";
  const bool has_mode = sizes.cp > 1 || options.context_mode != ContextMode::AllGather;
  if (has_mode) out += cat(", ", context_mode_name(options.context_mode));
  if (options.sharded_io) out += ", sharded input and output";
  if (joint_qkv) out += ", joint qkv";
  if (depth > 4) out += cat(", ", depth, " blocks");
  if (num_micro > 1) out += cat(", ", num_micro, " micro-batches");
  if (dropout > 0) out += cat(", dropout ", dropout);
  if (shard != config::ShardStage::None) {
    out += cat(", shard ", std::array{"none", "optimizer", "gradients", "full"}[static_cast<size_t>(shard)]);
    if (shard_replicas > 1) out += cat(" in ", shard_replicas, " groups");
  }
  if (weights) out += ", weights of points";
  if (steps > 1) out += cat(", ", steps, " steps");
  if (members > 1) out += cat(", ", members, " members");
  if (comm_dtype != GradientDtype::Same) out += comm_dtype == GradientDtype::Bf16 ? ", bf16 gradients" : ", fp16 gradients";
  return out;
}

std::vector<LayoutCase> layout_cases(int64_t world_size, LayoutChoice choice, parallel::AxisSet axes,
                                     const std::function<bool(const LayoutCase&)>& is_refused) {
  const std::vector<parallel::MeshSizes> meshes = meshes_of(world_size, axes);
  if (choice == LayoutChoice::Some) return some_cases(meshes, axes);
  if (choice == LayoutChoice::Pairs) return pairs_of_cases(meshes, axes, /*for_each_mesh=*/world_size <= 2, is_refused);
  std::vector<LayoutCase> cases;
  const std::vector<OptionLevels> settings = full_product();
  for (const parallel::MeshSizes& sizes : meshes) std::ranges::move(cases_of(sizes, settings, axes), std::back_inserter(cases));
  return cases;
}

std::vector<LayoutCase> sampled_cases(int64_t world_size, int64_t count, uint64_t seed, parallel::AxisSet axes,
                                      const std::vector<LayoutCase>& known) {
  const std::vector<parallel::MeshSizes> meshes = meshes_of(world_size, axes);
  std::mt19937_64 random(seed);
  std::set<std::string> seen;
  for (const LayoutCase& c : known) seen.insert(c.text());
  std::vector<LayoutCase> cases;
  constexpr int64_t kTries = 100;  // for each case: a model with few options has few layouts
  for (int64_t i = 0; i < kTries * count && static_cast<int64_t>(cases.size()) < count; ++i) {
    LayoutCase c = canonical(drawn_case(random, meshes), axes);
    if (seen.insert(c.text()).second) cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<LayoutMove> layout_moves(const std::vector<LayoutCase>& cases) {
  std::vector<LayoutCase> firsts;
  for (const LayoutCase& c : cases) {
    if (std::ranges::none_of(firsts, [&c](const LayoutCase& first) { return same_mesh(first, c); })) firsts.push_back(c);
  }
  std::vector<LayoutMove> moves;
  for (size_t i = 0; firsts.size() > 1 && i < firsts.size(); ++i) {
    LayoutMove move{.before = firsts[i], .after = firsts[(i + 1) % firsts.size()]};
    // Blocks along the width may take masks of dropout in one mode alone.
    const double dropout = move.after.sizes.w > 1 ? std::min(move.before.dropout, move.after.dropout) : move.before.dropout;
    for (LayoutCase* c : {&move.before, &move.after}) {
      c->comm_dtype = GradientDtype::Same;
      c->depth = std::max(move.before.depth, move.after.depth);
      c->joint_qkv = move.before.joint_qkv;
      c->dropout = dropout;
      c->weights = move.before.weights;
      c->steps = c->members = 1;  // of a pipeline
    }
    moves.push_back(std::move(move));
  }
  return moves;
}

}  // namespace welkin::verify
