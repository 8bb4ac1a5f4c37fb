// SPDX-License-Identifier: Apache-2.0
#include "train/forecast_files.h"

#include <algorithm>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "observe/image/png.h"
#include "train/field_picture.h"
#include "train/prediction_file.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> channel_indices(const data::SampleSpec& spec, const std::vector<std::string>& names) {
  if (names.empty()) return {0};
  std::vector<int64_t> indices;
  for (const std::string& name : names) {
    const auto found = std::find(spec.target.channels.begin(), spec.target.channels.end(), name);
    if (found == spec.target.channels.end()) {
      throw ConfigError("predict", cat("there is no such channel: channel=", name),
                        cat("Choose one of: ", join(spec.target.channels, ", ")));
    }
    indices.push_back(found - spec.target.channels.begin());
  }
  return indices;
}

struct Forecast {
  int64_t index = 0;
  at::Tensor input, target, prediction;  // (1, C, ...)
};

std::string with_unit(const data::ArraySpec& array, int64_t channel) {
  const auto c = static_cast<size_t>(channel);
  return array.units[c].empty() ? array.channels[c] : cat(array.channels[c], " [", array.units[c], "]");
}

// The picture of one sample in the data's units. The input's panel is the newest step of the channel, or, where the input holds
// other quantities than the target (dark matter and gas), its first channel.
void draw_sample(const data::SampleSpec& spec, const Forecast& forecast, int64_t channel, const fs::path& path) {
  const auto plane = [&](const at::Tensor& batch, const auto& mean, const auto& deviation, int64_t at_channel) {
    return plane_of(in_data_units(batch, mean, deviation).select(0, 0), at_channel);
  };
  ForecastPicture picture;
  picture.title = cat("sample ", forecast.index, ", ", with_unit(spec.target, channel));
  picture.input_is_earlier_target = has_persistence(spec);
  const int64_t shown = picture.input_is_earlier_target ? spec.newest_input_channel + channel : 0;
  if (!picture.input_is_earlier_target) picture.input_title = cat("input: ", with_unit(spec.input, shown));
  picture.input = plane(forecast.input, spec.input_mean, spec.input_std, shown);
  picture.target = plane(forecast.target, spec.target_mean, spec.target_std, channel);
  picture.prediction = plane(forecast.prediction, spec.target_mean, spec.target_std, channel);
  observe::image::write_png(path, draw_forecast(picture));
}

}  // namespace

std::vector<int64_t> spread_indices(int64_t size, int64_t count) {
  std::vector<int64_t> indices;
  const int64_t wanted = std::min(size, count);
  for (int64_t i = 0; i < wanted; ++i) indices.push_back(wanted == 1 ? 0 : i * (size - 1) / (wanted - 1));
  return indices;
}

std::vector<fs::path> write_forecasts(const TrainedModel& model, const ForecastOptions& options) {
  const data::SampleSpec& spec = model.dataset().spec();
  const auto channels = channel_indices(spec, options.channels);
  const auto indices = spread_indices(model.dataset().size(), options.num_samples);
  make_folders(options.folder);
  const fs::path fields = options.folder / "predictions.h5";
  std::vector<fs::path> written = {fields};
  write_path_atomically(fields, [&](const fs::path& temporary) {
    PredictionWriter writer(temporary, spec, static_cast<int64_t>(indices.size()));
    writer.set_text("checkpoint", model.checkpoint().string());
    data::Pipeline batches = model.pipeline(1);
    for (const int64_t index : indices) {
      batches.resume({.epoch = 0, .step = index});
      const data::Batch batch = batches.next();
      const Forecast forecast{index, batch.input, batch.target, model.predict(batch)};
      writer.append(forecast.input, forecast.target, forecast.prediction, {index});
      for (const int64_t channel : channels) {
        const std::string& name = spec.target.channels[static_cast<size_t>(channel)];
        written.push_back(options.folder / cat("sample_", index, "_", name, ".png"));
        draw_sample(spec, forecast, channel, written.back());
      }
    }
    writer.close();
  });
  return written;
}

}  // namespace welkin::train
