// SPDX-License-Identifier: Apache-2.0
// The functions of welkin.h on this side of torch: each catches what is thrown and says it in the caller's buffer.
#include "apps/capi/functions.h"

#include <c10/util/Exception.h>

#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "apps/cli/trained_run.h"
#include "core/error.h"
#include "core/text.h"
#include "train/coupling/field_stepper.h"
#include "train/learn/registries.h"

struct welkin_model {
  welkin::train::Registries registries;
  std::unique_ptr<welkin::train::TrainedModel> trained;
  std::optional<welkin::train::FieldStepper> stepper;
  mutable std::mutex busy;
};

namespace welkin::apps {
namespace {

void say(char* error, std::string_view text) {
  const size_t count = std::min(text.size(), static_cast<size_t>(kWelkinErrorBytes - 1));
  std::memcpy(error, text.data(), count);
  error[count] = '\0';
}

welkin_status guarded(char* error, const std::function<void()>& body) {
  try {
    body();
    return WELKIN_OK;
  } catch (const Error& thrown) {
    say(error, thrown.what());
    return static_cast<welkin_status>(thrown.exit_code());
  } catch (const c10::Error& thrown) {
    say(error, thrown.what_without_backtrace());
  } catch (const std::exception& thrown) {
    say(error, thrown.what());
  } catch (...) {
    say(error, "[coupling] an unknown error");
  }
  return WELKIN_FAILED;
}

void require(const void* pointer, const char* name) {
  if (pointer == nullptr) throw ConfigError("coupling", cat("a pointer is null: argument=", name), "Give its address");
}

void open_model(const std::string& run_folder, const std::string& options, welkin_model& model) {
  std::vector<std::string> words{"welkin_open", run_folder};
  std::istringstream parts(options);
  for (std::string word; parts >> word;) words.push_back(word);
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
  return guarded(error, [&] {
    require(run_folder, "run_folder");
    require(model, "model");
    *model = nullptr;
    auto made = std::make_unique<welkin_model>();
    open_model(run_folder, options == nullptr ? "" : options, *made);
    *model = made.release();
  });
}

void c_close(welkin_model* model) { const std::unique_ptr<welkin_model> owner(model); }

const data::ArraySpec& side_of(const welkin_model* model, welkin_side side) {
  return side == WELKIN_INPUT ? model->stepper->input() : model->stepper->target();
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
  train::FieldLayout layout{.is_double = type == WELKIN_FLOAT64};
  if (type != WELKIN_FLOAT32 && type != WELKIN_FLOAT64) {
    throw ConfigError("coupling", cat("an unknown type of values: type=", static_cast<int>(type)),
                      "Give WELKIN_FLOAT32 or WELKIN_FLOAT64");
  }
  if (strides != nullptr) layout.strides.assign(strides, strides + model->stepper->shape().size());
  return layout;
}

// No other call for this model runs meanwhile.
template <typename Body>
welkin_status with_model(const welkin_model* model, char* error, const Body& body) {
  return guarded(error, [&] {
    require(model, "model");
    const std::lock_guard lock(model->busy);
    body();
  });
}

welkin_status c_set_field(welkin_model* model, const char* channel, const void* values, welkin_type type, const int64_t* strides,
                          char* error) {
  return with_model(model, error, [&] {
    require(channel, "channel");
    require(values, "values");
    model->stepper->set(channel, values, layout_of(model, type, strides));
  });
}

welkin_status c_step(welkin_model* model, char* error) {
  return with_model(model, error, [&] { model->stepper->step(); });
}

welkin_status c_get_field(const welkin_model* model, const char* channel, void* values, welkin_type type, const int64_t* strides,
                          char* error) {
  return with_model(model, error, [&] {
    require(channel, "channel");
    require(values, "values");
    model->stepper->get(channel, values, layout_of(model, type, strides));
  });
}

welkin_status c_advance(welkin_model* model, char* error) {
  return with_model(model, error, [&] { model->stepper->advance(); });
}

}  // namespace
}  // namespace welkin::apps

// NOLINTNEXTLINE(readability-identifier-naming): C's spelling
extern "C" __attribute__((visibility("default"))) const welkin_functions welkin_functions_1 = {
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
};
