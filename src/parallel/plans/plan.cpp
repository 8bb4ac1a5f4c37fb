// SPDX-License-Identifier: Apache-2.0
// Applying a plan: parameters first, then what each site does, then which gradients are parts of sums.
#include "parallel/plans/plan.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "model/layers/dropout.h"
#include "parallel/comm/differentiable.h"
#include "parallel/shard/shards.h"
#include "parallel/tokens/column_input.h"
#include "parallel/tokens/field_shard.h"
#include "parallel/tokens/ring_attention.h"
#include "parallel/tokens/token_split.h"

namespace welkin::parallel {
namespace {

using model::Body;
using model::Tensors;

constexpr int64_t kTokenDim = 1;  // of (B, N, D)

std::vector<std::string> dotted_parts(const std::string& path) {
  std::vector<std::string> parts{""};
  for (const char c : path) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string divisors_text(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return join(divisors, ", ");
}

// One application of a plan to a model.
class PlanApplication {
 public:
  PlanApplication(const Plan& plan, model::Model& model, ParamTable& table, const MeshGroups& groups)
      : plan_(plan), model_(model), table_(table), groups_(groups), sites_(model.sites()), tokens_(split_of(plan, groups)) {}

  void run() {
    for (const PlanRow& row : plan_.rows) apply_row(row);
    for (ParamRow& row : table_.rows()) row.partial_over = partial_axes(row);
    table_.check_strides();
  }

 private:
  static TokenSplit split_of(const Plan& plan, const MeshGroups& groups) {
    std::vector<Axis> axes = plan.input_axes;
    for (const PlanRow& row : plan.rows) {
      if (const auto* split = std::get_if<SplitTokens>(&row.style))
        axes.insert(axes.end(), split->axes.begin(), split->axes.end());
    }
    return {plan.num_tokens, axes, groups};
  }

  void apply_row(const PlanRow& row);
  bool install_at(model::Site& site, const ParallelStyle& style);
  const model::Dropout* weights_drop_near(const model::Site& site) const;
  std::shared_ptr<ColumnInput> column_input_near(const model::Site& site, Axis axis);
  bool install_input_at(model::Site& site, const ParallelStyle& style);
  std::vector<TokenSplit::Level> inner_levels() const;
  AxisSet input_axes() const;
  void split_linear(const std::string& site, Shard weight, std::optional<Shard> bias, Axis axis);
  void check_units(const std::string& site, const ColumnParallel& split, int64_t outputs) const;
  model::Dropout::WindowOf window_of(const ParallelStyle& style, const model::Dropout& layer) const;

  AxisSet partial_axes(const ParamRow& row) const;
  const ParallelStyle* style_at(const std::string& name) const;
  size_t site_index_of(const std::string& parameter) const;
  bool is_named_whole(const std::string& parameter) const;

  const Plan& plan_;
  model::Model& model_;
  ParamTable& table_;
  const MeshGroups& groups_;
  std::vector<model::Site*> sites_;
  TokenSplit tokens_;
  std::map<std::string, std::shared_ptr<ColumnInput>> column_inputs_;  // by the path of the layer and the axis
};

// "blocks.3.attn." of "blocks.3.attn.core".
std::string home_of(const model::Site& site) { return site.name().substr(0, site.name().rfind('.') + 1); }

void PlanApplication::apply_row(const PlanRow& row) {
  bool used = false;
  for (model::Site* site : sites_) {
    if (matches_pattern(row.pattern, site->name())) used = install_at(*site, row.style) || used;
  }
  for (const auto& module : model_.modules(/*include_self=*/false)) {
    auto* dropout = dynamic_cast<model::Dropout*>(module.get());
    if (dropout == nullptr || !matches_pattern(row.pattern, dropout->path())) continue;
    dropout->window_of = window_of(row.style, *dropout);
    used = true;
  }
  for (const ParamRow& parameter : table_.rows()) used = used || matches_pattern(row.pattern, parameter.name);
  if (!used) {
    throw ConfigError("parallel", cat("a row of the plan names nothing in the model: pattern=", row.pattern),
                      "Name a site, a parameter or a dropout layer of this model; * stands for one part of a path");
  }
}

Tensors leave_section(const Group& group, const TokenSplit::Level* level, const at::Tensor& matmul) {
  if (level == nullptr) return {reduce_from_group(group, matmul)};
  return {reduce_scatter_autograd(group, matmul, kTokenDim, level->lengths)};
}

std::optional<TokenSplit::Level> copied(const TokenSplit::Level* level) {
  return level == nullptr ? std::nullopt : std::optional(*level);
}

const TokenSplit::Level* pointer_to(const std::optional<TokenSplit::Level>& level) { return level ? &*level : nullptr; }

// The masks of a ring, from what the model hands over with q, k and v while dropout is active.
RingDropout ring_dropout(const model::Dropout* layer, const Tensors& in) {
  constexpr size_t kStep = 3, kSample = 4, kStream = 5;
  if (in.size() <= kStream) return {};
  WELKIN_CHECK(layer != nullptr, "a ring with dropout knows the layer whose masks it makes");
  return {.rate = layer->rate(),
          .key = {static_cast<uint64_t>(in[kStream].item<int64_t>()), in[kStep], in[kSample]},
          .queries = layer->window({in[0].size(0), in[0].size(1), in[0].size(2), in[1].size(2)})};
}

// Whether the style is one of sites.
bool PlanApplication::install_at(model::Site& site, const ParallelStyle& style) {
  if (std::holds_alternative<SplitTokens>(style)) {
    site.install([levels = inner_levels(), num_tokens = tokens_.num_of(plan_.input_axes.size())](Tensors in, const Body& body) {
      Tensors out = body(std::move(in));
      WELKIN_CHECK(out.at(0).size(kTokenDim) == num_tokens, "the plan knows the number of tokens");
      for (const auto& level : levels) out = {split_to_group(level.group, out.at(0), kTokenDim, level.lengths)};
      return out;
    });
  } else if (std::holds_alternative<GatherTokens>(style)) {
    site.install([levels = inner_levels()](Tensors in, const Body& body) {
      Tensors out = body(std::move(in));
      for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
        out = {gather_from_group(level->group, out.at(0), kTokenDim, level->lengths)};
      }
      return out;
    });
  } else if (const auto* enter = std::get_if<ColumnParallelInput>(&style)) {
    if (const auto input = column_input_near(site, enter->axis)) {
      site.install([input](const Tensors& in, const Body& body) { return body({input->enter(in.at(0))}); });
    }
  } else if (const auto* column = std::get_if<ColumnParallel>(&style)) {
    const Shard shard{0, column->parts};
    check_units(site.name(), *column, table_.at(site.name() + ".weight").global_shape.at(0));
    split_linear(site.name(), shard, shard, column->axis);
    if (const auto input = column_input_near(site, column->axis)) {
      site.install([input](Tensors in, const Body& body) -> Tensors {
        if (auto matmul = input->matmul(in.at(0), in.at(1))) return {*std::move(matmul)};
        return body(std::move(in));
      });
    }
  } else if (const auto* row = std::get_if<RowParallel>(&style)) {
    split_linear(site.name(), Shard{1}, std::nullopt, row->axis);
    site.install([group = groups_.along(row->axis), level = copied(tokens_.level(row->axis))](Tensors in, const Body& body) {
      return leave_section(group, pointer_to(level), body(std::move(in)).at(0));
    });
  } else if (const auto* context = std::get_if<ContextParallelAttention>(&style)) {
    const TokenSplit::Level* level = tokens_.level(context->axis);
    if (level == nullptr || level->group.size() == 1) return true;
    site.install(
        [level = *level, mode = context->mode, drop = weights_drop_near(site)](const Tensors& in, const Body& body) -> Tensors {
          if (mode == ContextMode::AllGather) return all_gather_attention(level.group, level.lengths, in, body);
          if (mode == ContextMode::AllToAll) return all_to_all_attention(level.group, level.lengths, in, body);
          return {ring_attention(level.group, level.lengths, in.at(0), in.at(1), in.at(2), ring_dropout(drop, in))};
        });
  } else {
    return install_input_at(site, style);
  }
  return true;
}

// The levels that the input is not split over already.
std::vector<TokenSplit::Level> PlanApplication::inner_levels() const {
  return {tokens_.levels().begin() + static_cast<std::ptrdiff_t>(plan_.input_axes.size()), tokens_.levels().end()};
}

AxisSet PlanApplication::input_axes() const {
  AxisSet axes;
  for (const Axis axis : plan_.input_axes) axes = axes | axis;
  return axes;
}

// What surrounds a model whose input is split.
bool PlanApplication::install_input_at(model::Site& site, const ParallelStyle& style) {
  const bool is_whole = std::holds_alternative<OwnFromAll>(style);
  const bool leaves = std::holds_alternative<ReadFromOwn>(style);
  if (!is_whole && !leaves && !std::holds_alternative<OwnFromRead>(style)) return false;
  const TokenSplit input(plan_.num_tokens, plan_.input_axes, groups_);
  const FieldShard share = field_shard(input.offset(), input.num_own(), plan_.tokens_per_row);
  const int64_t first = is_whole ? input.offset() : share.first_token;
  const int64_t extent = is_whole ? plan_.num_tokens : share.num_tokens_read();
  site.install([first, extent, own = share.num_tokens, leaves](Tensors in, const Body& body) -> Tensors {
    const at::Tensor out = body(std::move(in)).at(0);
    WELKIN_CHECK(out.size(kTokenDim) == (leaves ? own : extent), "the plan knows the number of tokens");
    if (!leaves) return {out.narrow(kTokenDim, first, own)};
    return {at::constant_pad_nd(out, {0, 0, first, extent - first - own})};
  });
  return true;
}

// The dropout layer on attention weights that stands beside the site, where the plan treats one.
const model::Dropout* PlanApplication::weights_drop_near(const model::Site& site) const {
  const std::string home = home_of(site);
  for (const auto& module : model_.modules(/*include_self=*/false)) {
    const auto* dropout = dynamic_cast<const model::Dropout*>(module.get());
    if (dropout == nullptr || !dropout->path().starts_with(home)) continue;
    const ParallelStyle* style = style_at(dropout->path());
    if (style != nullptr && std::holds_alternative<AttentionMask>(*style)) return dropout;
  }
  return nullptr;
}

// The one that sites of the same layer share; null where nobody shares the axis.
std::shared_ptr<ColumnInput> PlanApplication::column_input_near(const model::Site& site, Axis axis) {
  const Group& group = groups_.along(axis);
  if (group.size() == 1) return nullptr;
  std::shared_ptr<ColumnInput>& input = column_inputs_[cat(home_of(site), axis_name(axis))];
  if (!input) {
    const TokenSplit::Level* level = tokens_.level(axis);
    input = std::make_shared<ColumnInput>(group, level == nullptr ? std::nullopt : std::optional(level->lengths));
  }
  return input;
}

void PlanApplication::check_units(const std::string& site, const ColumnParallel& split, int64_t outputs) const {
  const int64_t size = groups_.along(split.axis).size();
  const int64_t units = split.units > 0 ? split.units : outputs / split.parts;
  if (units % size == 0) return;
  throw ConfigError("parallel",
                    cat("a layer does not divide: layer=", site, split.units > 0 ? ", heads=" : ", outputs=", units, ", ",
                        axis_name(split.axis), "=", size),
                    cat("Sizes of ", axis_name(split.axis), " that work: ", divisors_text(units)));
}

void PlanApplication::split_linear(const std::string& site, Shard weight, std::optional<Shard> bias, Axis axis) {
  const Group& group = groups_.along(axis);
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (ParamRow& row : table_.rows()) {
    const bool is_weight = row.name == site + ".weight";
    if (!is_weight && (row.name != site + ".bias" || !bias)) continue;
    const Shard shard = is_weight ? weight : *bias;
    const int64_t extent = row.global_shape.at(static_cast<size_t>(shard.dim));
    if (extent % (shard.parts * group.size()) != 0) {
      throw ConfigError("parallel",
                        cat("a layer does not divide: parameter=", row.name, ", extent=", extent / shard.parts, ", ",
                            axis_name(axis), "=", group.size()),
                        cat("Sizes of ", axis_name(axis), " that work: ", divisors_text(extent / shard.parts)));
    }
    row.placements[axis] = shard;
    row.local.set_data(shard_of(row.local.detach(), shard, group.group_rank(), group.size()));
  }
}

model::Dropout::WindowOf PlanApplication::window_of(const ParallelStyle& style, const model::Dropout& layer) const {
  if (std::holds_alternative<TokenMask>(style)) {
    return [total = tokens_.num_tokens(), offset = tokens_.offset()](at::IntArrayRef shape) {
      return ops::MaskWindow{{total, shape[2]}, {offset, 0}};
    };
  }
  if (const auto* columns = std::get_if<ColumnMask>(&style)) {
    const Group& group = groups_.along(columns->axis);
    return [total = tokens_.num_tokens(), offset = tokens_.offset_without(columns->axis), size = group.size(),
            place = group.group_rank()](at::IntArrayRef shape) {
      return ops::MaskWindow{{total, shape[2] * size}, {offset, place * shape[2]}};
    };
  }
  const auto* attention = std::get_if<AttentionMask>(&style);
  WELKIN_CHECK(attention != nullptr, cat("a plan treats a dropout layer as something else: ", layer.path()));
  const Group& heads = groups_.along(attention->heads);
  const Group& context = groups_.along(attention->tokens);
  const bool all_to_all = attention->mode == ContextMode::AllToAll;
  const int64_t all_to_all_size = all_to_all ? context.size() : 1;
  const int64_t all_to_all_rank = all_to_all ? context.group_rank() : 0;
  return [total = tokens_.num_tokens(), query = all_to_all ? 0 : tokens_.offset_without(attention->heads), heads, all_to_all_size,
          all_to_all_rank](at::IntArrayRef shape) {
    return ops::MaskWindow{{shape[1] * all_to_all_size * heads.size(), total, total},
                           {(heads.group_rank() * all_to_all_size + all_to_all_rank) * shape[1], query, 0}};
  };
}

const ParallelStyle* PlanApplication::style_at(const std::string& name) const {
  for (const PlanRow& row : plan_.rows) {
    if (matches_pattern(row.pattern, name)) return &row.style;
  }
  return nullptr;
}

bool PlanApplication::is_named_whole(const std::string& parameter) const {
  const ParallelStyle* style = style_at(parameter);
  return style != nullptr && std::holds_alternative<AllTokens>(*style);
}

// The site with the longest name that leads to the parameter.
size_t PlanApplication::site_index_of(const std::string& parameter) const {
  size_t best = sites_.size();
  for (size_t i = 0; i < sites_.size(); ++i) {
    const bool leads = parameter.starts_with(sites_[i]->name() + ".");
    if (leads && (best == sites_.size() || sites_[i]->name().size() > sites_[best]->name().size())) best = i;
  }
  if (best < sites_.size()) return best;
  throw ConfigError("parallel", cat("the plan does not say which tokens a parameter sees: parameter=", parameter),
                    "Give its layer a site, or the plan a row AllTokens for it");
}

AxisSet PlanApplication::partial_axes(const ParamRow& row) const {
  if (is_named_whole(row.name)) return input_axes();
  const size_t own = site_index_of(row.name);
  AxisSet partial = input_axes();
  AxisSet section;  // the axis of the section that the parameter stands in
  for (size_t i = 0; i <= own; ++i) {
    const ParallelStyle* style = style_at(sites_[i]->name());
    if (style == nullptr) continue;
    if (const auto* split = std::get_if<SplitTokens>(style); split != nullptr && i < own) {
      for (const Axis axis : split->axes) partial = partial | axis;
    } else if (std::holds_alternative<GatherTokens>(*style) && i < own) {
      partial = input_axes();
    } else if (const auto* enter = std::get_if<ColumnParallelInput>(style)) {
      section = enter->axis;
    } else if (std::holds_alternative<RowParallel>(*style)) {
      section = {};
    }
  }
  partial = partial | section;  // a part of the features, where not of the tokens
  AxisSet summed;
  for (const Axis axis : {Axis::Tp, Axis::Cp}) {
    if (partial.contains(axis) && !row.placements[axis].sharded()) summed = summed | axis;
  }
  return summed;
}

}  // namespace

bool matches_pattern(const std::string& pattern, const std::string& name) {
  const std::vector<std::string> wanted = dotted_parts(pattern);
  const std::vector<std::string> given = dotted_parts(name);
  return wanted.size() == given.size() &&
         std::equal(wanted.begin(), wanted.end(), given.begin(),
                    [](const std::string& want, const std::string& part) { return want == "*" || want == part; });
}

void apply_plan(const Plan& plan, model::Model& model, ParamTable& table, const MeshGroups& groups) {
  PlanApplication(plan, model, table, groups).run();
}

}  // namespace welkin::parallel
