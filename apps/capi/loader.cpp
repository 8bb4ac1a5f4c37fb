// SPDX-License-Identifier: Apache-2.0
// libwelkin_c.so: linked to neither torch nor libwelkin.so, which welkin_open() loads, as apps/launcher.cpp does for the program.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "apps/capi/functions.h"
#include "core/error.h"
#include "core/text.h"
#include "launch/torch_loader.h"
#include "launch/torch_location.h"

namespace {

namespace fs = std::filesystem;

thread_local std::array<char, kWelkinErrorBytes> last_error{};
std::mutex loading;
std::atomic<const welkin_functions*> loaded{nullptr};

fs::path own_folder() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&own_folder), &info);
  return fs::canonical(info.dli_fname).parent_path();
}

// In a wheel's installation torch's folder is beside Welkin's; a source tree has a .venv.
std::optional<fs::path> nearby_torch(const fs::path& libraries) {
  const fs::path above = libraries.parent_path().parent_path();
  return welkin::launch::torch_package_in(above) ? above : above / ".venv";
}

const welkin_functions* load() {
  const std::lock_guard lock(loading);
  if (const welkin_functions* functions = loaded.load()) return functions;
  const fs::path libraries = own_folder();
  const fs::path package = welkin::launch::find_torch({.environment = welkin::launch::environment_path("WELKIN_TORCH"),
                                                       .virtual_env = welkin::launch::environment_path("VIRTUAL_ENV"),
                                                       .nearby_venv = nearby_torch(libraries)});
  welkin::launch::set_loading_environment();
  const bool with_cuda = welkin::launch::has_cuda_device();
  welkin::launch::load_torch(package, with_cuda);
  welkin::launch::load_welkin(libraries, with_cuda);
  const void* table = dlsym(RTLD_DEFAULT, kWelkinFunctionsName);
  if (table == nullptr) {
    throw welkin::ConfigError("launcher", welkin::cat("libwelkin.so is of another version: it lacks ", kWelkinFunctionsName),
                              "Install libwelkin_c.so and libwelkin.so together");
  }
  loaded = static_cast<const welkin_functions*>(table);
  return loaded;
}

// A model exists only after loading, so the table is there.
const welkin_functions& functions() { return *loaded.load(); }

template <typename Body>
welkin_status loaded_or_error(const Body& body) {
  try {
    return body(*load());
  } catch (const welkin::Error& error) {
    std::strncpy(last_error.data(), error.what(), last_error.size() - 1);
    return static_cast<welkin_status>(error.exit_code());
  } catch (const std::exception& error) {
    std::strncpy(last_error.data(), error.what(), last_error.size() - 1);
    return WELKIN_FAILED;
  }
}

welkin_status refuse_training() {
  std::strncpy(last_error.data(),
               "[coupling] there is no training: welkin_train_open has not made one. Look at what it returned.",
               last_error.size() - 1);
  return WELKIN_USAGE;
}

welkin_status refuse_model() {
  std::strncpy(last_error.data(), "[coupling] there is no model: welkin_open has not made one. Look at what it returned.",
               last_error.size() - 1);
  return WELKIN_USAGE;
}

}  // namespace

extern "C" {

const char* welkin_last_error(void) { return last_error.data(); }

welkin_status welkin_open(const char* run_folder, const char* options, welkin_model** model) {
  if (model != nullptr) *model = nullptr;  // also on failure
  return loaded_or_error(
      [&](const welkin_functions& library) { return library.open(run_folder, options, model, last_error.data()); });
}

void welkin_close(welkin_model* model) {
  if (model != nullptr) functions().close(model);
}

int welkin_num_channels(const welkin_model* model, welkin_side side) {
  return model == nullptr ? 0 : functions().num_channels(model, side);
}

const char* welkin_channel_name(const welkin_model* model, welkin_side side, int channel) {
  return model == nullptr ? nullptr : functions().channel_name(model, side, channel);
}

const char* welkin_channel_unit(const welkin_model* model, welkin_side side, int channel) {
  return model == nullptr ? nullptr : functions().channel_unit(model, side, channel);
}

int welkin_shape(const welkin_model* model, int64_t shape[3]) { return model == nullptr ? 0 : functions().shape(model, shape); }

welkin_status welkin_set_field(welkin_model* model, const char* channel, const void* values, welkin_type type,
                               const int64_t* strides) {
  return model == nullptr ? refuse_model() : functions().set_field(model, channel, values, type, strides, last_error.data());
}

welkin_status welkin_step(welkin_model* model) {
  return model == nullptr ? refuse_model() : functions().step(model, last_error.data());
}

welkin_status welkin_get_field(const welkin_model* model, const char* channel, void* values, welkin_type type,
                               const int64_t* strides) {
  return model == nullptr ? refuse_model() : functions().get_field(model, channel, values, type, strides, last_error.data());
}

welkin_status welkin_advance(welkin_model* model) {
  return model == nullptr ? refuse_model() : functions().advance(model, last_error.data());
}

welkin_status welkin_train_open(const char* options, welkin_training** training) {
  if (training != nullptr) *training = nullptr;
  return loaded_or_error(
      [&](const welkin_functions& library) { return library.train_open(options, training, last_error.data()); });
}

welkin_status welkin_train_set_channel(welkin_training* training, const char* channel, const char* unit, double mean,
                                       double deviation) {
  return training == nullptr ? refuse_training()
                             : functions().train_set_channel(training, channel, unit, mean, deviation, last_error.data());
}

welkin_status welkin_train_set_grid(welkin_training* training, const double* latitude, const double* longitude) {
  return training == nullptr ? refuse_training() : functions().train_set_grid(training, latitude, longitude, last_error.data());
}

int welkin_train_shape(const welkin_training* training, int64_t shape[3]) {
  return training == nullptr ? 0 : functions().train_shape(training, shape);
}

welkin_status welkin_train_set_field(welkin_training* training, welkin_side side, const char* channel, const void* values,
                                     welkin_type type, const int64_t* strides) {
  return training == nullptr ? refuse_training()
                             : functions().train_set_field(training, side, channel, values, type, strides, last_error.data());
}

welkin_status welkin_train_give(welkin_training* training, int64_t milliseconds) {
  return training == nullptr ? refuse_training() : functions().train_give(training, milliseconds, last_error.data());
}

welkin_status welkin_train_progress(const welkin_training* training, welkin_progress* progress) {
  return training == nullptr ? refuse_training() : functions().train_progress(training, progress, last_error.data());
}

const char* welkin_train_folder(const welkin_training* training) {
  return training == nullptr ? nullptr : functions().train_folder(training);
}

welkin_status welkin_train_close(welkin_training* training) {
  return training == nullptr ? WELKIN_OK : functions().train_close(training, last_error.data());
}

}  // extern "C"
