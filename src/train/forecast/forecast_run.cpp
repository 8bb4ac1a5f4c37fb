// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/forecast_run.h"

#include <ATen/ops/isfinite.h>

#include <algorithm>

#include "core/hash.h"
#include "core/text.h"
#include "data/forecast/forecast_starts.h"
#include "parallel/comm/collectives.h"
#include "train/evaluate/prediction_file.h"
#include "train/forecast/model_step.h"

namespace welkin::train {
namespace {

// The most steps of a member: lagged members begin so many steps before the start.
int64_t most_steps(const EnsembleOptions& options) {
  const bool is_lagged = options.ensemble.perturbation.kind == PerturbationKind::Lagged;
  const bool is_bred = options.ensemble.perturbation.kind == PerturbationKind::Bred;
  return options.steps + (is_lagged ? options.members - 1 : 0) + (is_bred ? 1 : 0);
}

// In the files that a build can go on with. Files without it do not declare NaN as the value of a missing point.
constexpr const char* kFileVersion = "forecast file 3";

std::string words_of(const EnsembleStart& ensemble) {
  const Perturbation& noise = ensemble.perturbation;
  return cat("kind ", static_cast<int>(noise.kind), ", amplitude ", noise.amplitude, ", length_km ", noise.length_km, ", cycles ",
             noise.cycles, ", seed ", ensemble.seed, ", control ", ensemble.has_control);
}

}  // namespace

ForecastRun::ForecastRun(const data::FieldStates& fields, std::vector<const TrainedModel*> models, EnsembleOptions options,
                         const parallel::World& world)
    : fields_(fields),
      models_(std::move(models)),
      options_(std::move(options)),
      world_(world),
      step_(fields, models_.front()->config(), models_.front()->device(), most_steps(options_)),
      initial_(step_, options_.ensemble) {
  lay_out();
  const bool is_lagged = options_.ensemble.perturbation.kind == PerturbationKind::Lagged;
  const auto num_starts = static_cast<int64_t>(layout_.starts.size());
  units_ = forecast_units(num_starts, options_.members, static_cast<int64_t>(models_.size()),
                          is_lagged ? 1 : models_.front()->batch_size());
  request_ = request_text();
  if (world_.is_main()) data::ForecastStore::check(options_.output, layout_, request_);
}

void ForecastRun::lay_out() {
  const data::SampleSpec& spec = fields_.spec();
  layout_.channels = spec.target.channels;
  layout_.units = spec.target.units;
  layout_.latitude = spec.latitude;
  layout_.longitude = spec.longitude;
  layout_.height = spec.target.shape.at(1);
  layout_.width = spec.target.shape.at(2);
  layout_.calendar = fields_.calendar();
  layout_.members = options_.members;
  layout_.starts = data::choose_starts(fields_, options_.from,
                                       {.steps_before = initial_.history_needed(options_.members), .steps = options_.steps});
  layout_.leads = data::leads_of(fields_.step(), models_.front()->config().data.dt, options_.steps);
  for (const int64_t start : layout_.starts) {
    std::vector<int64_t>& times = layout_.valid_times.emplace_back();
    for (int64_t lead = 1; lead <= options_.steps; ++lead) times.push_back(fields_.valid_time(start, lead));
  }
  layout_.attributes = {{"title", std::vector<std::string>{cat("Forecast of ", models_.front()->config().model.model)}},
                        {"source", std::vector<std::string>{cat(options_.source, ", ", sources())}},
                        {"history", std::vector<std::string>{"made by welkin forecast"}}};
}

std::string ForecastRun::sources() const {
  std::string text;
  for (const TrainedModel* model : models_)
    text += cat(text.empty() ? "" : "; ", "checkpoint ", model->checkpoint().string(), " of step ", model->step());
  return text;
}

// The ranks of a replica call it together.
std::string ForecastRun::request_text() const {
  std::string text = cat(kFileVersion, "\n", sources(), "\n");
  for (const TrainedModel* model : models_) text += cat("weights ", hex_digits(model->weights_hash()), "\n");
  text += cat(options_.inputs, "\n");
  text += cat("steps ", options_.steps, ", members ", options_.members, ", dropout ", options_.has_dropout, "\n");
  text += cat(words_of(options_.ensemble), "\nbatch ", models_.front()->batch_size(), "\n");
  for (const int64_t start : layout_.starts) text += cat("start ", data::format_date(layout_.calendar, start), "\n");
  return text;
}

int64_t ForecastRun::run(const std::function<void(int64_t, int64_t)>& progress) {
  const auto meet = [&] {
    if (world_.size() > 1) parallel::barrier(world_.world_group());
  };
  const auto open_store = [&] {
    store_ = std::make_unique<data::ForecastStore>(options_.output, layout_, request_, world_.rank());
  };
  if (world_.is_main()) open_store();
  meet();
  if (!store_) open_store();
  meet();  // all ranks know the same journals
  std::vector<int64_t> own;
  const parallel::Group& replicas = models_.front()->replicas();
  int64_t pending = 0;
  for (int64_t unit = 0; unit < num_units(); ++unit) {
    if (!store_->is_done(unit) && pending++ % replicas.size() == replicas.group_rank()) own.push_back(unit);
  }
  int64_t made = 0;
  for (const int64_t number : own) {
    run_unit(units_[static_cast<size_t>(number)], number,
             [&] { progress(++made, static_cast<int64_t>(own.size()) * options_.steps); });
  }
  meet();
  if (world_.is_main()) store_->publish();
  meet();
  return nonfinite_;
}

void ForecastRun::run_unit(const ForecastUnit& unit, int64_t number, const std::function<void()>& made) {
  const TrainedModel& model = *models_[static_cast<size_t>(unit.model)];
  const int64_t start = layout_.starts[static_cast<size_t>(unit.start)], before = initial_.steps_before(unit.members.front());
  const at::Tensor holes = step_.holes(start);
  at::Tensor input = initial_.make(model, start, unit.members, holes);
  for (int64_t step = 1; step <= before + options_.steps; ++step) {
    const int64_t valid = fields_.valid_time(start, step - before);
    const at::Tensor prediction = predict_step(
        model, input, {.seed = options_.ensemble.seed, .start_seconds = start, .members = unit.members, .step = step});
    if (step > before) {
      if (model.is_first_of_replica()) write(unit, step - before, prediction, holes);
      made();
    }
    if (step < before + options_.steps) input = step_.next(input, prediction, valid, holes);
  }
  if (model.is_first_of_replica()) store_->finish_unit(number);
}

void ForecastRun::write(const ForecastUnit& unit, int64_t lead, const at::Tensor& prediction, const at::Tensor& holes) {
  const data::SampleSpec& spec = fields_.spec();
  const at::Tensor values = in_file_units(holes.defined() ? prediction + holes : prediction, data::target_transform(spec));
  const auto plane = static_cast<size_t>(layout_.height * layout_.width);
  const float* field = values.const_data_ptr<float>();
  for (const int64_t member : unit.members) {
    for (int64_t channel = 0; channel < values.size(1); ++channel, field += plane) {
      store_->write(channel, unit.start, member, lead - 1, {field, plane});
    }
  }
  if (lead < options_.steps) return;
  at::Tensor sound = values.isfinite();
  if (holes.defined()) sound = sound.logical_or(holes.isnan().to(sound.device()));
  nonfinite_ += (sound.flatten(1).all(1).logical_not()).sum().item<int64_t>();
}

}  // namespace welkin::train
