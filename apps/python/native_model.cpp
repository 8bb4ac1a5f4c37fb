// SPDX-License-Identifier: Apache-2.0
#include "apps/python/native_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "apps/cli/application.h"
#include "apps/cli/check_helper.h"
#include "apps/cli/flags.h"
#include "apps/cli/trained_run.h"
#include "apps/python/process_turn.h"
#include "apps/python/run_facts.h"
#include "core/error.h"
#include "core/text.h"
#include "data/formats/check_arrays.h"
#include "launch/plugin.h"
#include "train/evaluate/scores_report.h"
#include "train/evaluate/time_mean.h"
#include "train/interchange/model_package.h"

namespace welkin::apps::python {
namespace {

void check_files_in_children() {
  static std::once_flag once;
  std::call_once(once, [] {
    data::CheckHelper helper = check_helper();
    helper.arguments = {"hdf5"};
    data::check_hdf5_in_children(std::move(helper));
  });
}

std::vector<char*> pointers_to(Words& words) {
  std::vector<char*> pointers;
  std::ranges::transform(words, std::back_inserter(pointers), [](std::string& word) { return word.data(); });
  pointers.push_back(nullptr);
  return pointers;
}

Words lines_of(const std::string& text) {
  Words lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string scores_of(const train::TrainedModel& model) {
  const at::Tensor time_mean = train::read_time_mean(model.config().data.time_means_path, model.dataset().spec());
  return train::scores_json(model.score(time_mean, [](int64_t /*done*/) {}));
}

std::string sizes_text(at::IntArrayRef sizes) {
  return cat("(", join(std::vector<int64_t>(sizes.begin(), sizes.end()), ", "), ")");
}

}  // namespace

std::shared_ptr<train::Registries> registries_with(const Words& plugins) {
  using Register = void (*)(train::Registries&);
  check_files_in_children();
  auto registries = std::make_shared<train::Registries>();
  train::add_builtins(*registries);
  for (const std::string& path : plugins) reinterpret_cast<Register>(launch::load_plugin(path, "welkin_register"))(*registries);
  return registries;
}

NativeModel::NativeModel(const Words& words, const Words& plugins) : registries_(registries_with(plugins)) {
  const ProcessTurn turn;
  Words all{"welkin.load"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers = pointers_to(all);
  std::ostringstream out, err;
  Application application{out, err, *registries_};
  auto run = parse_trained_run(application, static_cast<int>(all.size()), pointers.data(), {});
  if (!run)
    throw ConfigError("python", cat("these options open no model: options=", join(words, " ")), "Leave out help and dry_run");
  choice_ = run->choice;
  choice_.keeps_settings = false;
  choice_.report = {};
  split_ = text_flag(run->line, "split", "valid");
  run->choice = choice_;
  trained_ = open_model(*registries_, *run);
  for (const at::Tensor& weight : trained_->model()->parameters()) weight.requires_grad_(false);  // only inputs have gradients
  warnings_ = lines_of(err.str());
  std::ranges::copy(trained_->dataset().warnings(), std::back_inserter(warnings_));
}

void NativeModel::check_input(const at::Tensor& input) const {
  const data::SampleSpec& spec = trained_->dataset().spec();
  const bool has_shape = input.dim() == static_cast<int64_t>(spec.input.shape.size()) + 1 &&
                         input.sizes().slice(1).equals(spec.input.shape) && input.size(0) > 0;
  if (!has_shape) {
    throw ConfigError("python",
                      cat("the input does not fit the model: shape=", sizes_text(input.sizes()), ", wanted=(B, ",
                          join(spec.input.shape, ", "), ")"),
                      "Give samples of the model's channels and grid (model.channels, model.grid)");
  }
  if (input.scalar_type() != at::kFloat || input.device().type() != trained_->device().type()) {
    throw ConfigError("python",
                      cat("the input is of another type or device than the model: dtype=", c10::toString(input.scalar_type()),
                          ", device=", input.device().str(), ", wanted=Float on ", trained_->device().str()),
                      "Convert it: x.to(model.device, torch.float32)");
  }
}

at::Tensor NativeModel::forward(const at::Tensor& input) const {
  check_input(input);
  const ProcessTurn turn;
  const auto integers = at::TensorOptions(at::kLong).device(trained_->device());
  const at::AutoGradMode gradient(input.requires_grad());
  return trained_->forward(
      input.contiguous(),
      {.seed = trained_->config().loop.seed, .step = at::zeros({}, integers), .sample = at::zeros({input.size(0)}, integers)});
}

std::string NativeModel::facts() const {
  const data::NanPolicy policy = data::nan_policy_for(trained_->dataset().spec(), trained_->config().data.nan_policy);
  nlohmann::ordered_json json = {{"config", config_json(trained_->config())},
                                 {"spec", spec_json(trained_->dataset().spec())},
                                 {"checkpoint", trained_->checkpoint().string()},
                                 {"run_folder", choice_.run_folder.string()},
                                 {"step", trained_->step()},
                                 {"device", trained_->device().str()},
                                 {"batch_size", trained_->batch_size()},
                                 {"split", split_},
                                 {"samples", trained_->dataset().size()},
                                 {"fills_points", data::fills_points(policy)},
                                 {"warnings", warnings_}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Words NativeModel::tensor_names() const {
  Words names;
  for (const auto& item : trained_->model()->named_parameters()) names.push_back(item.key());
  for (const auto& item : trained_->model()->named_buffers()) names.push_back(item.key());
  return names;
}

std::vector<at::Tensor> NativeModel::tensors() const {
  std::vector<at::Tensor> tensors;
  for (const auto& item : trained_->model()->named_parameters()) tensors.push_back(item.value());
  for (const auto& item : trained_->model()->named_buffers()) tensors.push_back(item.value());
  return tensors;
}

std::string NativeModel::scores() const {
  const ProcessTurn turn;
  if (!train::interchange::is_package(choice_.run_folder)) return scores_of(*trained_);
  return scores_of(train::TrainedModel(*registries_, trained_->config(), choice_));  // the model was opened without data
}

c10::intrusive_ptr<NativeDataset> NativeModel::dataset(const std::string& split) const {
  const config::RunConfig& config = trained_->config();
  auto dataset = registries_->datasets.at(config.data.dataset).open(config, train::parse_split(split));
  return c10::make_intrusive<NativeDataset>(std::move(dataset), config, registries_);
}

}  // namespace welkin::apps::python
