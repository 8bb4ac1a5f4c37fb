// SPDX-License-Identifier: Apache-2.0
#include "verify/layouts/layout_case.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "core/text.h"
#include "parallel/pipeline/schedule.h"

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

// Pairs of levels of two options that some setting has and no chosen one has.
class UncoveredPairs {
 public:
  explicit UncoveredPairs(const std::vector<OptionLevels>& all) {
    for (const OptionLevels& levels : all) for_each_pair(levels, [this](size_t pair) { left_[pair] = true; });
  }

  int64_t count_in(const OptionLevels& levels) const {
    int64_t count = 0;
    for_each_pair(levels, [&](size_t pair) { count += left_[pair] ? 1 : 0; });
    return count;
  }
  void cover(const OptionLevels& levels) {
    for_each_pair(levels, [this](size_t pair) { left_[pair] = false; });
  }

 private:
  static constexpr size_t kMostLevels = 4, kPlaces = kNumOptions * kMostLevels;

  template <typename Body>
  static void for_each_pair(const OptionLevels& levels, const Body& body) {
    for (size_t a = 0; a < kNumOptions; ++a) {
      for (size_t b = a + 1; b < kNumOptions; ++b) body((a * kMostLevels + levels[a]) * kPlaces + b * kMostLevels + levels[b]);
    }
  }

  std::array<bool, kPlaces * kPlaces> left_{};
};

// Greedy: takes the setting that covers most of the uncovered pairs, until all are covered.
std::vector<OptionLevels> pairwise() {
  const std::vector<OptionLevels> all = full_product();
  UncoveredPairs left(all);
  std::vector<OptionLevels> chosen;
  for (;;) {
    int64_t most = 0;
    const OptionLevels* best = nullptr;
    for (const OptionLevels& levels : all) {
      if (const int64_t count = left.count_in(levels); count > most) most = count, best = &levels;
    }
    if (best == nullptr) return chosen;
    left.cover(*best);
    chosen.push_back(*best);
  }
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

// Blocks of tokens along the width, or over cp too. More than four ranks have more of them than all pairs are worth: they differ
// from those of two and four ranks in numbers alone.
bool is_of_token_blocks(const parallel::MeshSizes& sizes, parallel::AxisSet axes) {
  return axes.contains(parallel::Axis::Cp) && (sizes.w > 1 || (sizes.cp > 1 && sizes.h > 1));
}

bool same_mesh(const LayoutCase& a, const LayoutCase& b) {
  const auto of = [](const parallel::MeshSizes& s) { return std::tie(s.dp_replicate, s.tp, s.cp, s.pp, s.d, s.h, s.w); };
  return of(a.sizes) == of(b.sizes);
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

std::vector<LayoutCase> layout_cases(int64_t world_size, LayoutChoice choice, parallel::AxisSet axes) {
  const std::vector<OptionLevels> settings = choice == LayoutChoice::All ? full_product() : pairwise();
  std::vector<LayoutCase> cases;
  std::set<std::string> seen;
  size_t next = 0;
  for (const parallel::MeshSizes& sizes : meshes_of(world_size, axes)) {
    const bool has_few = choice == LayoutChoice::Pairs && world_size > 4 && is_of_token_blocks(sizes, axes);
    const bool takes_turns = choice == LayoutChoice::Some || has_few;
    const size_t count = takes_turns ? 2 : settings.size();
    for (size_t i = 0; i < count; ++i) {
      const size_t setting = takes_turns ? next++ % settings.size() : i;
      LayoutCase c = canonical(case_of(sizes, settings[setting]), axes);
      if (seen.insert(c.text()).second) cases.push_back(std::move(c));
    }
  }
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
    for (LayoutCase* c : {&move.before, &move.after}) {
      c->comm_dtype = GradientDtype::Same;
      c->depth = std::max(move.before.depth, move.after.depth);
      c->joint_qkv = move.before.joint_qkv;
      c->dropout = move.before.dropout;
      c->weights = move.before.weights;
      c->steps = c->members = 1;  // of a pipeline
    }
    moves.push_back(std::move(move));
  }
  return moves;
}

}  // namespace welkin::verify
