// SPDX-License-Identifier: Apache-2.0
#include "verify/engine/many_process_engine.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "parallel/plans/plans.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "parallel/shard/shards.h"
#include "parallel/shard/split.h"
#include "parallel/tokens/token_split.h"
#include "train/optim/optimizer.h"
#include "verify/cases/reference_loss.h"
#include "verify/engine/activations.h"

namespace welkin::verify {
namespace {

using parallel::Axis;
using parallel::kDp;

parallel::Mesh mesh_of_case(const nlohmann::json& layout) {
  const auto text = layout.at("order").get<std::string>();  // "tp-cp-dp (the first name varies fastest with the rank)"
  const auto size = [&](const char* axis) { return layout.at(axis).get<int64_t>(); };
  return {text.substr(0, text.find(' ')), {.dp_replicate = size("dp"), .tp = size("tp"), .cp = size("cp")}};
}

class ManyProcessEngine : public ModelEngine {
 public:
  ManyProcessEngine(const ModelCase& c, const parallel::MeshGroups& groups)
      : groups_(groups), model_(build_case_model(c)), table_(parallel::ParamTable::of(*model_)) {
    const parallel::Plan plan = parallel::vit_plan_of(c.config.model, c.shape, groups_.mesh(), {});
    apply_plan(plan, *model_, table_, groups_);
    capture_ = std::make_unique<ActivationCapture>(*model_);
    tokens_ = parallel::TokenSplit(plan.num_tokens, {parallel::AxisSet(Axis::Cp)}, groups_);
    const at::Tensor input = c.inputs.get("input");
    batch_ = input.size(0);
    lengths_ = parallel::balanced_split(batch_, dp().size());
    input_ = own_samples(input).requires_grad_();
    target_ = own_samples(c.inputs.get("target"));
    std::vector<train::OptimizerParameter> parameters;
    for (const parallel::ParamRow& row : table_.rows()) parameters.push_back({row.name, row.local});
    optimizer_ = train::adam(c.config, std::move(parameters));
  }

  double step() override {
    model_->zero_grad();
    input_.mutable_grad() = at::Tensor();
    capture_->clear();
    activations_.clear();
    const at::Tensor loss = share_of_loss();
    capture_->enabled = false;
    loss.backward();
    parallel::sum_gradients(table_, dp());
    parallel::reduce_model_parallel_gradients(table_, groups_);
    return total(loss);
  }

  double loss_now() override {
    const at::NoGradGuard no_grad;
    return total(share_of_loss());
  }

  void update(double rate) override { optimizer_->step({at::full({}, rate, at::kDouble), at::zeros({}, at::kFloat)}); }

  at::Tensor output() const override { return all_gather(dp(), output_.detach(), 0, lengths_); }
  at::Tensor input_gradient() const override { return all_gather(dp(), input_.grad(), 0, lengths_); }

  Activation activation(const std::string& name) const override {
    if (const auto known = activations_.find(name); known != activations_.end()) return known->second;
    Activation found = capture_->find(name);
    if (found.value.defined()) {
      const auto* level = tokens_.level(Axis::Cp);
      const bool is_part = found.value.dim() == 3 && found.value.size(1) != tokens_.num_tokens();
      if (is_part) found.value = all_gather(level->group, found.value, 1, level->lengths);
      found.value = all_gather(dp(), found.value, 0, lengths_);
    }
    return activations_[name] = found;
  }

  std::vector<NamedTensor> gradients() const override {
    std::vector<NamedTensor> all;
    for (const parallel::ParamRow& row : table_.rows()) {
      all.push_back({row.name, whole(row.gradient(), row), capture_->order_of(row.name)});
    }
    return all;
  }

  std::vector<NamedTensor> weights() const override {
    std::vector<NamedTensor> all;
    for (const parallel::ParamRow& row : table_.rows()) all.push_back({row.name, whole(row.local.detach(), row)});
    return all;
  }

  at::Tensor float32_output() override { return {}; }

 private:
  const parallel::Group& dp() const { return groups_.along(kDp); }

  at::Tensor own_samples(const at::Tensor& all) const {
    const auto place = static_cast<size_t>(dp().group_rank());
    return all.narrow(0, parallel::split_offset(lengths_, dp().group_rank()), lengths_[place]).contiguous();
  }

  // The share of this rank's samples in the mean over the batch.
  at::Tensor share_of_loss() {
    output_ = model_->forward(input_, {});
    const double share = static_cast<double>(output_.size(0)) / static_cast<double>(batch_);
    return norm_ratio_loss(output_, target_) * share;
  }

  double total(const at::Tensor& share) const {
    return all_reduce(dp(), share.detach().to(at::kDouble).view({1})).item<double>();
  }

  at::Tensor whole(const at::Tensor& local, const parallel::ParamRow& row) const {
    const parallel::Placement& placement = row.placements[Axis::Tp];
    if (!placement.sharded()) return local;
    const parallel::Group& tp = groups_.along(Axis::Tp);
    const at::Tensor stacked = all_gather(tp, local.unsqueeze(0), 0, parallel::Lengths(static_cast<size_t>(tp.size()), 1));
    return parallel::join_shards(stacked.unbind(0), {placement.dim(), placement.parts()});
  }

  parallel::MeshGroups groups_;
  model::ModelPtr model_;
  parallel::ParamTable table_;
  std::unique_ptr<ActivationCapture> capture_;
  parallel::TokenSplit tokens_;
  int64_t batch_ = 0;
  parallel::Lengths lengths_;  // samples of each data-parallel rank
  at::Tensor input_, target_, output_;
  train::OptimizerPtr optimizer_;
  mutable std::map<std::string, Activation> activations_;
};

}  // namespace

int64_t ranks_of_case(const CaseFolder& folder) { return mesh_of_case(folder.meta().at("parallel")).world_size(); }

std::unique_ptr<ModelEngine> many_process_engine(const ModelCase& c, const CaseRanks& ranks) {
  const parallel::Mesh mesh = mesh_of_case(c.folder->meta().at("parallel"));
  if (mesh.world_size() != ranks.world_size) {
    throw DataError("reference",
                    cat("the case is written for another number of ranks: case=", c.folder->name(), ", ranks=", mesh.world_size(),
                        ", started=", ranks.world_size),
                    "Start as many processes as the case names");
  }
  return std::make_unique<ManyProcessEngine>(c, parallel::MeshGroups(ranks.make_group, ranks.rank, mesh));
}

}  // namespace welkin::verify
