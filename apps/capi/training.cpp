// SPDX-License-Identifier: Apache-2.0
#include "apps/capi/training.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apps/capi/boundary.h"
#include "apps/cli/application.h"
#include "apps/cli/dry_run.h"
#include "apps/cli/flags.h"
#include "config/flags/command_line.h"
#include "config/resolve/resolve.h"
#include "train/coupling/pair_trainer.h"

struct welkin_training {
  welkin::apps::capi::ProcessUse use{welkin::apps::capi::ProcessUse::Training};
  std::unique_ptr<welkin::train::PairTrainer> trainer;
  std::string folder;
  mutable std::mutex busy;
};

namespace welkin::apps::capi {
namespace {

using data::PairStream;

const std::vector<config::ExtraFlag> kTrainingFlags = {{"init_from", "PATH", "initial weights of the run"}};

std::unique_ptr<train::PairTrainer> open_training(const std::string& options) {
  std::vector<std::string> words = words_of(options);
  words.insert(words.begin(), "welkin_train_open");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  auto registries = std::make_unique<train::Registries>();
  train::add_builtins(*registries);
  const config::CommandLine line = config::parse(static_cast<int>(argv.size()), argv.data(), kTrainingFlags);
  if (line.help != config::Help::Off || is_dry_run(line))
    throw ConfigError("coupling", cat("these options train nothing: options=", options), "Leave out --help and --dry_run");
  config::Resolved resolved = config::resolve(line, kWorldSize, registries->known_names());
  return std::make_unique<train::PairTrainer>(std::move(registries), std::move(resolved), text_flag(line, "init_from"));
}

// Holds the training's lock: calls for it run one after the other, except welkin_train_progress().
template <typename Body>
welkin_status with_training(const welkin_training* training, char* error, const Body& body) {
  return guarded(error, [&] {
    require(training, "training");
    const std::lock_guard lock(training->busy);
    body(*training->trainer);
  });
}

std::vector<double> places(const double* from, int64_t count) {
  return from == nullptr ? std::vector<double>() : std::vector<double>(from, from + count);
}

}  // namespace

welkin_status train_open(const char* options, welkin_training** training, char* error) {
  return guarded(error, [&] {
    require(training, "training");
    require(options, "options");
    auto made = std::make_unique<welkin_training>();
    made->trainer = open_training(options);
    made->folder = made->trainer->folder().string();
    *training = made.release();
  });
}

welkin_status train_set_channel(welkin_training* training, const char* channel, const char* unit, double mean, double deviation,
                                char* error) {
  return with_training(training, error, [&](train::PairTrainer& trainer) {
    require(channel, "channel");
    trainer.set_channel(channel, {.unit = unit == nullptr ? "" : unit, .mean = mean, .std = deviation});
  });
}

welkin_status train_set_grid(welkin_training* training, const double* latitude, const double* longitude, char* error) {
  return with_training(training, error, [&](train::PairTrainer& trainer) {
    const std::vector<int64_t>& shape = trainer.shape();
    trainer.set_grid(places(latitude, shape.at(shape.size() - 2)), places(longitude, shape.back()));
  });
}

int train_shape(const welkin_training* training, int64_t* shape) {
  if (training == nullptr || shape == nullptr) return 0;
  const std::vector<int64_t>& dims = training->trainer->shape();
  std::ranges::copy(dims, shape);
  return static_cast<int>(dims.size());
}

welkin_status train_set_field(welkin_training* training, welkin_side side, const char* channel, const void* values,
                              welkin_type type, const int64_t* strides, char* error) {
  return with_training(training, error, [&](train::PairTrainer& trainer) {
    require(channel, "channel");
    require(values, "values");
    if (side != WELKIN_INPUT && side != WELKIN_TARGET) {
      throw ConfigError("coupling", cat("an unknown side of a pair: side=", static_cast<int>(side)),
                        "Give WELKIN_INPUT or WELKIN_TARGET");
    }
    using Side = train::PairTrainer::Side;
    trainer.set(side == WELKIN_INPUT ? Side::Input : Side::Target, channel, values,
                field_layout(type, strides, trainer.shape().size()));
  });
}

welkin_status train_give(welkin_training* training, int64_t milliseconds, char* error) {
  constexpr int64_t kLongest = int64_t{1000} * 3600 * 24 * 365;
  auto given = PairStream::Given::Full;
  const welkin_status status = with_training(training, error, [&](train::PairTrainer& trainer) {
    given = trainer.give(std::chrono::milliseconds(std::min(milliseconds, kLongest)));
  });
  if (status != WELKIN_OK) return status;
  return given == PairStream::Given::Taken ? WELKIN_OK : given == PairStream::Given::Full ? WELKIN_FULL : WELKIN_OVER;
}

welkin_status train_progress(const welkin_training* training, welkin_progress* progress, char* error) {
  return guarded(error, [&] {
    require(training, "training");
    require(progress, "progress");
    const train::TrainingProgress now = training->trainer->progress();
    *progress = {.step = now.reached.step,
                 .total_steps = now.reached.total_steps,
                 .epoch = now.reached.epoch,
                 .pairs = now.pairs,
                 .train_loss = now.train_loss,
                 .valid_loss = now.valid_loss,
                 .waited_seconds = now.waited_s,
                 .is_running = now.is_running ? 1 : 0};
  });
}

const char* train_folder(const welkin_training* training) { return training == nullptr ? nullptr : training->folder.c_str(); }

welkin_status train_close(welkin_training* training, char* error) {
  const std::unique_ptr<welkin_training> owner(training);
  return guarded(error, [&] {
    require(training, "training");
    training->trainer->finish();
  });
}

}  // namespace welkin::apps::capi
