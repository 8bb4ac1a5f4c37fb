// SPDX-License-Identifier: Apache-2.0
#include "parallel/plans/plan_traffic.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/error.h"
#include "core/text.h"
#include "model/layers/local_layer.h"
#include "parallel/plans/plan_context.h"
#include "parallel/spatial/sample_blocks.h"
#include "parallel/tokens/token_split.h"

namespace welkin::parallel {
namespace {

constexpr const char *kAllReduce = "all_reduce", *kAllGather = "all_gather", *kReduceScatter = "reduce_scatter",
                     *kAllToAll = "all_to_all", *kExchange = "send_receive";

// The path without its last part: "blocks.*.attn" of "blocks.*.attn.in".
std::string parent_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

// The first parts of a path: as many as the pattern has.
std::string head_of(const std::string& path, const std::string& pattern) {
  const auto parts = std::ranges::count(pattern, '.') + 1;
  size_t end = 0;
  for (int64_t part = 0; part < parts && end != std::string::npos; ++part) end = path.find('.', part == 0 ? 0 : end + 1);
  return path.substr(0, end);
}

// Sizes of the tensors that enter and leave the places of a pattern, whole, of one sample.
struct PlaceValues {
  double places = 0;
  double inputs = 0, results = 0;  // of the first and of the last layer of each place
  double first_results = 0;        // of its first layer
  double grad_inputs = 0;          // the part of `inputs` that needs a gradient
};

// Styles without a collective. A new style is one of them, or has a rule of its own: else this file does not compile.
template <typename Style, typename... Silent>
constexpr bool kIsOneOf = (std::is_same_v<Style, Silent> || ...);
template <typename Style>
constexpr bool kIsSilent = kIsOneOf<Style, ColumnParallel, SplitParameter, AllTokens, OwnFromRead, OwnFromAll, ReadFromOwn,
                                    TokenMask, ColumnMask, AttentionMask, DegreeWeights>;

class Traffic {
 public:
  Traffic(const Plan& plan, const model::Model* model, const model::ModelCost& cost, const Mesh& mesh, int64_t rank,
          const std::function<bool(const std::string&)>& runs_again)
      : plan_(plan), model_(model), cost_(cost), mesh_(mesh), rank_(rank), runs_again_(runs_again) {
    for (const PlanRow& row : plan.rows) {
      if (const auto* split = std::get_if<SplitTokens>(&row.style)) inner_ = split->axes;
    }
    is_sequence_split_ = std::ranges::find(inner_, Axis::Tp) != inner_.end();
    for (const AxisSet axes : plan.input_axes) token_ranks_ *= mesh.size(axes);
    for (const Axis axis : inner_) token_ranks_ *= axis == Axis::Tp ? 1 : mesh.size(axis);
    if (plan.num_tokens > 0) stream_ = of("patch_embed").results;  // the models of patches name it so
  }

  std::vector<PlanCalls> sum() {
    for (const PlanRow& row : plan_.rows) {
      forward_runs_ = runs_again_ && runs_again_(row.pattern) ? 2 : 1;
      std::visit([&](const auto& style) { add(row.pattern, style); }, row.style);
    }
    return std::move(calls_);
  }

 private:
  PlaceValues of(const std::string& pattern) const {
    PlaceValues values;
    std::string place;
    double last = 0;
    for (const model::LayerCost& layer : cost_.layers) {
      const std::string head = head_of(layer.name, pattern);
      if (layer.inputs == 0 || !matches_pattern(pattern, head)) continue;
      if (head != place) {
        place = head;
        values.places += 1;
        values.inputs += layer.inputs;
        values.first_results += layer.results;
        if (layer.train_flops > 2 * layer.forward_flops) values.grad_inputs += layer.inputs;
        values.results += std::exchange(last, 0);
      }
      last = layer.results;
    }
    values.results += last;
    return values;
  }

  double size(AxisSet axes) const { return static_cast<double>(mesh_.size(axes)); }
  // Ranks between which the points of a layer's tensors are divided, besides those of tp.
  double parts() const { return plan_.blocks ? size(kSpatial) : static_cast<double>(token_ranks_); }

  enum class In { Forward, Backward };

  // `is_stream`: values that stay float32 under mixed precision, as results of norms and sums do.
  void call(In pass, AxisSet axes, const char* name, double calls, double values, bool is_beside = false,
            bool is_stream = false) {
    if (mesh_.size(axes) == 1 || calls == 0) return;
    const double runs = pass == In::Forward ? forward_runs_ : 1;
    const bool is_wide = is_stream || name == kAllReduce || name == kReduceScatter;
    const auto known = std::ranges::find_if(calls_, [&](const PlanCalls& each) {
      return each.axes == axes && each.name == name && each.is_wide == is_wide && each.is_beside == is_beside;
    });
    PlanCalls& sum = known != calls_.end()
                         ? *known
                         : calls_.emplace_back(PlanCalls{.axes = axes, .name = name, .is_wide = is_wide, .is_beside = is_beside});
    sum.calls += runs * calls;
    sum.values += runs * values;
  }

  template <typename Style>
  requires kIsSilent<Style>
  void add(const std::string& /*pattern*/, const Style& /*style*/) {}

  // weights

  // The backward pass sums the input's gradient while it makes the last weight's. Tokens are gathered for both passes.
  void add(const std::string& pattern, const ColumnParallelInput& style) {
    const PlaceValues at = of(parent_of(pattern));
    const double values = at.inputs / parts();
    if (!is_sequence_split_) return call(In::Backward, style.axis, kAllReduce, at.places, values, /*is_beside=*/true);
    call(In::Forward, style.axis, kAllGather, at.places, values, /*is_beside=*/false, /*is_stream=*/true);
    call(In::Backward, style.axis, kAllGather, at.places, values, /*is_beside=*/true);
    call(In::Backward, style.axis, kReduceScatter, at.places, values, /*is_beside=*/true);
  }

  void add(const std::string& pattern, const RowParallel& style) {
    const PlaceValues at = of(pattern);
    const double values = at.results / parts();
    if (!is_sequence_split_) return call(In::Forward, style.axis, kAllReduce, at.places, values);
    call(In::Forward, style.axis, kReduceScatter, at.places, values);
    call(In::Backward, style.axis, kAllGather, at.places, values);
  }

  void add(const std::string& pattern, const GatheredChannels& style) {
    const PlaceValues at = of(pattern);
    call(In::Forward, style.axis, kAllGather, at.places, at.results / parts());
    if (at.grad_inputs > 0) call(In::Backward, style.axis, kAllReduce, at.places, at.grad_inputs / parts());
  }

  void add(const std::string& pattern, const GroupedChannels& style) {
    const PlaceValues at = of(pattern);
    for (const In pass : {In::Forward, In::Backward}) {
      if (is_sequence_split_) {
        call(pass, style.axis, kAllToAll, 2 * at.places, 2 * at.results / parts() / size(style.axis));
      } else {
        call(pass, style.axis, kAllGather, at.places, at.results / parts());
      }
    }
  }

  // tokens

  // What a level splits is what the levels before it have left.
  void at_each_level(In pass, const std::vector<Axis>& axes) {
    double whole = stream_;
    for (const AxisSet split : plan_.input_axes) whole /= size(split);
    for (const Axis axis : axes) {
      call(pass, axis, kAllGather, 1, whole, /*is_beside=*/false, /*is_stream=*/true);
      whole /= size(axis);
    }
  }
  void add(const std::string& /*pattern*/, const SplitTokens& style) { at_each_level(In::Backward, style.axes); }
  void add(const std::string& /*pattern*/, const GatherTokens& style) { at_each_level(In::Forward, style.axes); }

  void add(const std::string& pattern, const ContextParallelAttention& style) {
    const double ranks = size(style.axes), places = of(parent_of(pattern)).places;
    const double keys = 2 * stream_ * places / size(Axis::Tp), own = keys / ranks;
    if (style.mode == ContextMode::AllGather) {
      call(In::Forward, style.axes, kAllGather, places, keys);
      call(In::Backward, style.axes, kReduceScatter, places, keys);
    } else if (style.mode == ContextMode::AllToAll) {  // q, k, v, and the result: twice as much as k and v
      for (const In pass : {In::Forward, In::Backward}) call(pass, style.axes, kAllToAll, 2 * places, 2 * own);
    } else {  // gradients make a whole turn
      call(In::Forward, style.axes, kExchange, (ranks - 1) * places, (ranks - 1) * own, /*is_beside=*/true);
      call(In::Backward, style.axes, kExchange, (ranks - 1) * places, (ranks - 1) * own, /*is_beside=*/true);
      call(In::Backward, style.axes, kExchange, ranks * places, ranks * own, /*is_beside=*/true, /*is_stream=*/true);
    }
  }

  void add(const std::string& pattern, const TokensToChannels& style) {
    const PlaceValues at = of(style.parts > 1 ? parent_of(pattern) : pattern);
    const double values = (style.parts > 1 ? at.first_results : at.inputs) / size(Axis::Tp) / size(style.axes);
    for (const In pass : {In::Forward, In::Backward}) {
      call(pass, style.axes, kAllToAll, 2 * at.places, values + values / static_cast<double>(style.parts));
    }
  }

  // layers on blocks

  void add(const std::string& pattern, const HaloConvolution& style) {
    WELKIN_CHECK(model_ != nullptr, "the traffic of halos needs the layers' kernels");
    const model::LocalLayer* layer = nullptr;
    for (const auto& module : model_->modules(/*include_self=*/false)) {
      const auto* local = dynamic_cast<const model::LocalLayer*>(module.get());
      if (local != nullptr && local->path() == pattern) layer = local;
    }
    WELKIN_CHECK(layer != nullptr, "the row of a layer on blocks names one");
    const GroupMembers group = mesh_.group_of(rank_, kSpatial);
    const HaloPlan halos =
        halo_plan(layer_on_blocks(style, layer->rule(), mesh_), coordinates_of(group.ranks, mesh_), group.place);
    if (halos.sends.empty() && halos.receives.empty()) return;
    PlaceValues at = of(pattern);
    if (at.places == 0) at = of(parent_of(pattern));  // the cost may be that of the layer and its activation
    const double channels = at.inputs / static_cast<double>(style.in_cells[0] * style.in_cells[1] * style.in_cells[2]);
    const auto cells = [](const std::vector<HaloMessage>& messages) {
      double sum = 0;
      for (const HaloMessage& message : messages) sum += static_cast<double>(message.cells());
      return sum;
    };
    call(In::Forward, kSpatial, kExchange, 1, channels * cells(halos.sends), /*is_beside=*/true);
    if (at.grad_inputs > 0) call(In::Backward, kSpatial, kExchange, 1, channels * cells(halos.receives), /*is_beside=*/true);
  }

  void add(const std::string& pattern, const BlockNorm& style) {
    const double cells = static_cast<double>(style.cells[0] * style.cells[1] * style.cells[2]);
    double channels = 0;
    for (const model::LayerCost& layer : cost_.layers) {
      if (layer.name == pattern) channels = layer.activation_bytes / (2 * model::kFloatBytes * cells);
    }
    call(In::Forward, kSpatial, kAllReduce, 1, 2 * 2 * channels);  // two sums, of float64
    call(In::Backward, kSpatial, kAllReduce, 1, 2 * channels);
  }

  void add(const std::string& pattern, const SphereAnalysis& style) {
    const PlaceValues at = of(pattern), back = of(cat(parent_of(pattern), ".filter"));
    const bool changes_grid = style.from != style.to;
    const double values = at.inputs + at.results + (changes_grid ? back.results : 0);
    for (const In pass : {In::Forward, In::Backward})
      call(pass, kSpatial, kAllToAll, changes_grid ? 3 : 2, values / size(kSpatial));
  }
  void add(const std::string& pattern, const SphereSynthesis& /*style*/) {
    const PlaceValues at = of(parent_of(pattern));
    for (const In pass : {In::Forward, In::Backward})
      call(pass, kSpatial, kAllToAll, 2, (at.inputs + at.results) / size(kSpatial) / size(Axis::Tp));
  }

  const Plan& plan_;
  const model::Model* model_;
  const model::ModelCost& cost_;
  const Mesh& mesh_;
  int64_t rank_;
  std::vector<Axis> inner_;
  bool is_sequence_split_ = false;
  int64_t token_ranks_ = 1;  // ranks between which the tokens of a matmul are split
  double stream_ = 0;        // values of all tokens
  const std::function<bool(const std::string&)>& runs_again_;
  double forward_runs_ = 1;
  std::vector<PlanCalls> calls_;
};

}  // namespace

std::vector<PlanCalls> plan_traffic(const Plan& plan, const model::Model* model, const model::ModelCost& cost, const Mesh& mesh,
                                    int64_t rank, const std::function<bool(const std::string&)>& runs_again) {
  return Traffic(plan, model, cost, mesh, rank, runs_again).sum();
}

bool reads_layers(const Plan& plan) {
  return std::ranges::any_of(plan.rows, [](const PlanRow& row) { return std::holds_alternative<HaloConvolution>(row.style); });
}

}  // namespace welkin::parallel
