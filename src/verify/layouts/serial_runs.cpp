// SPDX-License-Identifier: Apache-2.0
#include "verify/layouts/serial_runs.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "verify/layouts/layout_problem.h"

namespace welkin::verify {
namespace {

// The case without what only several ranks can have.
LayoutCase serial_of(const LayoutCase& c) {
  LayoutCase serial{.sizes = {}};
  serial.joint_qkv = c.joint_qkv, serial.dropout = c.dropout, serial.depth = c.depth, serial.batch = c.batch;
  serial.weights = c.weights, serial.steps = c.steps, serial.members = c.members;
  return serial;
}

std::string name_of(const LayoutCase& serial) { return cat(serial.text(), " ", serial.depth, " ", serial.batch); }

LayoutRun compute(const LayoutSubject& subject, const LayoutCase& serial) {
  const parallel::MeshGroups one;
  return train_under(subject, serial, one, at::kCPU);
}

// A run of the right shapes, without values.
LayoutRun empty_run(const LayoutSubject& subject, const LayoutCase& serial) {
  const model::ModelShape shape = problem_shape(subject.model);
  const data::Region everything = data::whole(problem_spec(shape));
  LayoutRun run;
  run.table = parallel::ParamTable::of(*problem_model(subject, serial, at::kCPU));
  run.input_gradient =
      at::empty_like(problem_data(serial, shape, {.step = 0, .first = 0, .count = serial.batch}, everything, at::kCPU).input);
  run.output = at::empty(with_grid({serial.batch, shape.out_channels}, shape), at::kDouble);
  for (const parallel::ParamRow& row : run.table.rows()) {
    run.gradients.push_back(at::empty(row.local.sizes(), at::kDouble));
    run.weights.push_back(at::empty(row.local.sizes(), at::kDouble));
  }
  return run;
}

std::vector<at::Tensor*> tensors_of(LayoutRun& run) {
  std::vector<at::Tensor*> all{&run.output, &run.input_gradient};
  for (at::Tensor& gradient : run.gradients) all.push_back(&gradient);
  for (at::Tensor& weight : run.weights) all.push_back(&weight);
  return all;
}

// Gives the values of the member at place `root` to the others: losses, then tensors, in one message.
void share(const parallel::Group& world, int64_t root, LayoutRun& run) {
  if (world.size() == 1) return;
  run.losses.resize(kProblemSteps);
  std::vector<at::Tensor> values{at::tensor(run.losses, at::kDouble)};
  for (const at::Tensor* tensor : tensors_of(run)) values.push_back(tensor->detach().reshape({-1}));
  const at::Tensor message = at::cat(values);
  broadcast(world, message, root);
  const double* value = message.const_data_ptr<double>();
  std::copy_n(value, run.losses.size(), run.losses.begin());
  auto begin = static_cast<int64_t>(run.losses.size());
  for (at::Tensor* tensor : tensors_of(run)) {
    const int64_t length = tensor->numel();
    *tensor = message.narrow(0, begin, length).view(tensor->sizes());
    begin += length;
  }
}

}  // namespace

void SerialRuns::learn(const std::vector<LayoutCase>& cases) {
  std::map<std::string, LayoutCase> missing;
  for (const LayoutCase& c : cases) {
    const LayoutCase serial = serial_of(c);
    if (!runs_.contains(name_of(serial))) missing.emplace(name_of(serial), serial);
  }
  const parallel::Group& world = ranks_.world;
  std::map<std::string, LayoutRun> learned;
  int64_t turn = 0;
  for (const auto& [name, serial] : missing) {  // all compute their own before any waits
    const bool is_own = turn++ % world.size() == world.group_rank();
    learned.emplace(name, is_own ? compute(subject_, serial) : empty_run(subject_, serial));
  }
  turn = 0;
  for (auto& [name, run] : learned) share(world, turn++ % world.size(), run);
  runs_.merge(learned);
}

const LayoutRun& SerialRuns::of(const LayoutCase& c) const { return runs_.at(name_of(serial_of(c))); }

}  // namespace welkin::verify
