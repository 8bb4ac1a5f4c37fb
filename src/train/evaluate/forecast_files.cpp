// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/forecast_files.h"

#include <ATen/ops/stack.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "train/evaluate/channel_units.h"
#include "train/evaluate/field_animation.h"
#include "train/evaluate/prediction_file.h"
#include "train/evaluate/rollout.h"
#include "train/evaluate/sample_picture.h"
#include "train/run/field_picture.h"

namespace welkin::train {
namespace fs = std::filesystem;

std::vector<int64_t> spread_indices(int64_t size, int64_t count) {
  std::vector<int64_t> indices;
  const int64_t wanted = std::min(size, count);
  for (int64_t i = 0; i < wanted; ++i) indices.push_back(wanted == 1 ? 0 : i * (size - 1) / (wanted - 1));
  return indices;
}

namespace {

// One sample: its own target and prediction, and of a rollout all leads, (1, lead, C, ...), the last one to be drawn.
struct LeadForecast {
  int64_t index = 0;
  SampleFields shown;
  at::Tensor targets, predictions;
};

LeadForecast one_step(const TrainedModel& model, data::Pipeline& batches, int64_t index) {
  batches.resume({.epoch = 0, .step = index});
  const data::Batch batch = batches.next();
  const at::Tensor prediction = model.predict(batch);
  return {index, {batch.input, batch.target, prediction}, batch.target, prediction};
}

LeadForecast many_steps(const Rollout& rollout, int64_t index) {
  LeadForecast forecast{.index = index, .shown = {}, .targets = {}, .predictions = {}};
  std::vector<at::Tensor> targets, predictions;
  rollout.run({index}, [&](const RolloutStep& step) {
    targets.push_back(step.target);
    predictions.push_back(step.prediction);
    forecast.shown = {step.start, step.target, step.prediction};
  });
  forecast.targets = at::stack(targets, 1);
  forecast.predictions = at::stack(predictions, 1);
  return forecast;
}

// Target, prediction and difference of all leads; where the target has no value, all are grey.
void animate_sample(const data::SampleSpec& spec, const LeadForecast& forecast, int64_t channel, const fs::path& path,
                    observe::image::AnimationFormat format) {
  const ChannelUnits shown = target_units(spec);
  FieldMovie movie{.panels = {{.title = "target"},
                              {.title = "prediction", .range_of = 0},
                              {.title = "prediction - target", .colors = observe::image::ColorMap::Diverging, .range_of = 2}},
                   .map = map_of(spec)};
  for (int64_t lead = 0; lead < forecast.targets.size(1); ++lead) {
    const auto plane = [&](const at::Tensor& leads) {
      return plane_of(rescaled(leads.select(1, lead), shown.offset, shown.scale).select(0, 0), channel);
    };
    const at::Tensor target = plane(forecast.targets), difference = (plane(forecast.predictions) - target).contiguous();
    movie.titles.push_back(cat("sample ", forecast.index, ", ", with_unit(spec.target, shown, channel), ", lead ", lead + 1));
    movie.panels[0].planes.push_back(target);
    movie.panels[1].planes.push_back((target + difference).contiguous());
    movie.panels[2].planes.push_back(difference);
  }
  write_movie(movie, path, format);
}

std::vector<int64_t> lead_steps(const TrainedModel& model, int64_t steps) {
  std::vector<int64_t> leads;
  for (int64_t lead = 1; steps > 1 && lead <= steps; ++lead) leads.push_back(lead * model.config().data.dt);
  return leads;
}

}  // namespace

std::vector<fs::path> write_forecasts(const TrainedModel& model, const ForecastOptions& options) {
  const data::SampleSpec& spec = model.dataset().spec();
  const auto channels = picture_channels(spec, options.channels);
  std::optional<Rollout> rollout;
  if (options.animation && options.rollout_steps < 2)
    throw ConfigError("predict", "an animation shows several leads: rollout_steps=1", "Give --rollout_steps of 2 or more");
  if (options.rollout_steps > 1) rollout.emplace(model, options.rollout_steps);
  auto indices =
      spread_indices(rollout ? static_cast<int64_t>(rollout->starts().size()) : model.dataset().size(), options.num_samples);
  for (int64_t& index : indices) index = rollout ? rollout->starts()[static_cast<size_t>(index)] : index;
  const auto make_each = [&](const std::function<void(const LeadForecast&)>& use) {
    data::Pipeline batches = model.pipeline(1);
    for (const int64_t index : indices) use(rollout ? many_steps(*rollout, index) : one_step(model, batches, index));
  };
  if (!model.is_first_of_replica()) {
    make_each([](const LeadForecast&) {});
    return {};
  }
  const std::string last_lead = rollout ? cat("_lead", options.rollout_steps) : "";
  make_folders(options.folder);
  const fs::path fields = options.folder / "predictions.h5";
  std::vector<fs::path> written = {fields};
  write_path_atomically(fields, [&](const fs::path& temporary) {
    PredictionWriter writer(temporary, spec, static_cast<int64_t>(indices.size()), lead_steps(model, options.rollout_steps));
    writer.set_text("checkpoint", model.checkpoint().string());
    make_each([&](const LeadForecast& forecast) {
      writer.append(forecast.shown.input, forecast.targets, forecast.predictions, {forecast.index});
      for (const int64_t channel : channels) {
        const std::string name =
            cat("sample_", forecast.index, "_", name_in_file(spec.target.channels[static_cast<size_t>(channel)]));
        written.push_back(options.folder / cat(name, last_lead, ".png"));
        draw_sample(spec, forecast.shown, channel,
                    {cat("sample ", forecast.index), rollout ? cat(", lead ", options.rollout_steps) : ""}, written.back());
        if (!options.animation) continue;
        written.push_back(options.folder / cat(name, observe::image::extension_of(*options.animation)));
        animate_sample(spec, forecast, channel, written.back(), *options.animation);
      }
    });
    writer.close();
  });
  return written;
}

}  // namespace welkin::train
