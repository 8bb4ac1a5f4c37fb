// SPDX-License-Identifier: Apache-2.0
// The functions of welkin.h on this side of torch. Each catches exceptions and writes their text into the caller's buffer.
#include "apps/capi/functions.h"

#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "apps/capi/boundary.h"
#include "apps/capi/training.h"
#include "apps/cli/trained_run.h"
#include "core/error.h"
#include "core/text.h"
#include "train/coupling/field_stepper.h"
#include "train/learn/registries.h"

struct welkin_model {
  welkin::train::Registries registries;
  std::unique_ptr<welkin::train::TrainedModel> trained;
  std::optional<welkin::train::FieldStepper> stepper;
  welkin::apps::capi::ProcessUse use{welkin::apps::capi::ProcessUse::Models};
  mutable std::mutex busy;
};

namespace welkin::apps {
namespace {

void open_model(const std::string& run_folder, const std::string& options, welkin_model& model) {
  std::vector<std::string> words{"welkin_open", run_folder};
  for (std::string& word : capi::words_of(options)) words.push_back(std::move(word));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  train::add_builtins(model.registries);
  std::ostringstream printed;
  Application application{printed, std::cerr, model.registries};
  const auto run = parse_trained_run(application, static_cast<int>(argv.size()), argv.data(), {});
  if (!run)
    throw ConfigError("coupling", cat("these options open no model: options=", options), "Leave out --help and --dry_run");
  model.trained = apps::open_model(model.registries, *run);
  model.stepper.emplace(*model.trained);
}

welkin_status c_open(const char* run_folder, const char* options, welkin_model** model, char* error) {
  return capi::guarded(error, [&] {
    capi::require(model, "model");
    capi::require(run_folder, "run_folder");
    auto made = std::make_unique<welkin_model>();
    open_model(run_folder, options == nullptr ? "" : options, *made);
    *model = made.release();
  });
}

void c_close(welkin_model* model) { const std::unique_ptr<welkin_model> owner(model); }

// An unknown side has no channels.
const data::ArraySpec& side_of(const welkin_model* model, welkin_side side) {
  static const data::ArraySpec nothing;
  if (side == WELKIN_INPUT) return model->stepper->input();
  return side == WELKIN_TARGET ? model->stepper->target() : nothing;
}

int c_num_channels(const welkin_model* model, welkin_side side) {
  return model == nullptr ? 0 : static_cast<int>(side_of(model, side).channels.size());
}

const char* text_of(const std::vector<std::string>& texts, int channel) {
  return channel >= 0 && static_cast<size_t>(channel) < texts.size() ? texts[static_cast<size_t>(channel)].c_str() : nullptr;
}

const char* c_channel_name(const welkin_model* model, welkin_side side, int channel) {
  return model == nullptr ? nullptr : text_of(side_of(model, side).channels, channel);
}

const char* c_channel_unit(const welkin_model* model, welkin_side side, int channel) {
  return model == nullptr ? nullptr : text_of(side_of(model, side).units, channel);
}

int c_shape(const welkin_model* model, int64_t* shape) {
  if (model == nullptr || shape == nullptr) return 0;
  const std::vector<int64_t>& dims = model->stepper->shape();
  std::copy(dims.begin(), dims.end(), shape);
  return static_cast<int>(dims.size());
}

train::FieldLayout layout_of(const welkin_model* model, welkin_type type, const int64_t* strides) {
  return capi::field_layout(type, strides, model->stepper->shape().size());
}

// Holds the model's lock: calls for one model run one after the other.
template <typename Body>
welkin_status with_model(const welkin_model* model, char* error, const Body& body) {
  return capi::guarded(error, [&] {
    capi::require(model, "model");
    const std::lock_guard lock(model->busy);
    body();
  });
}

welkin_status c_set_field(welkin_model* model, const char* channel, const void* values, welkin_type type, const int64_t* strides,
                          char* error) {
  return with_model(model, error, [&] {
    capi::require(channel, "channel");
    capi::require(values, "values");
    model->stepper->set(channel, values, layout_of(model, type, strides));
  });
}

welkin_status c_step(welkin_model* model, char* error) {
  return with_model(model, error, [&] { model->stepper->step(); });
}

welkin_status c_get_field(const welkin_model* model, const char* channel, void* values, welkin_type type, const int64_t* strides,
                          char* error) {
  return with_model(model, error, [&] {
    capi::require(channel, "channel");
    capi::require(values, "values");
    model->stepper->get(channel, values, layout_of(model, type, strides));
  });
}

welkin_status c_advance(welkin_model* model, char* error) {
  return with_model(model, error, [&] { model->stepper->advance(); });
}

}  // namespace
}  // namespace welkin::apps

// NOLINTNEXTLINE(readability-identifier-naming): C's spelling
extern "C" __attribute__((visibility("default"))) const welkin_functions welkin_functions_2 = {
    .open = welkin::apps::c_open,
    .close = welkin::apps::c_close,
    .num_channels = welkin::apps::c_num_channels,
    .channel_name = welkin::apps::c_channel_name,
    .channel_unit = welkin::apps::c_channel_unit,
    .shape = welkin::apps::c_shape,
    .set_field = welkin::apps::c_set_field,
    .step = welkin::apps::c_step,
    .get_field = welkin::apps::c_get_field,
    .advance = welkin::apps::c_advance,
    .train_open = welkin::apps::capi::train_open,
    .train_set_channel = welkin::apps::capi::train_set_channel,
    .train_set_grid = welkin::apps::capi::train_set_grid,
    .train_shape = welkin::apps::capi::train_shape,
    .train_set_field = welkin::apps::capi::train_set_field,
    .train_give = welkin::apps::capi::train_give,
    .train_progress = welkin::apps::capi::train_progress,
    .train_folder = welkin::apps::capi::train_folder,
    .train_close = welkin::apps::capi::train_close,
};
