// SPDX-License-Identifier: Apache-2.0
#include "apps/python/native_training.h"

#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/cli/application.h"
#include "apps/cli/flags.h"
#include "apps/python/process_turn.h"
#include "apps/python/run_facts.h"
#include "config/flags/command_line.h"
#include "core/error.h"
#include "core/process/signal_stack.h"
#include "core/text.h"
#include "train/coupling/hosted_run.h"

namespace welkin::apps::python {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<config::ExtraFlag> kRunFlags = {{"init_from", "PATH", "initial weights of the run"}};

config::CommandLine line_of(const Words& words) {
  std::vector<const char*> pointers{"welkin.train"};
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return config::parse(static_cast<int>(pointers.size()), pointers.data(), kRunFlags);
}

Json step_json(const char* kind, const train::ReachedStep& at) {
  return {{"kind", kind}, {"step", at.step}, {"total_steps", at.total_steps}, {"epoch", at.epoch}};
}

// Makes a run reachable for stop() while it lasts.
class Reachable {
 public:
  Reachable(std::mutex& mutex, InterruptWatch*& place, InterruptWatch& watch, const bool& is_stopped)
      : mutex_(mutex), place_(place) {
    const std::lock_guard lock(mutex_);
    place_ = &watch;
    if (is_stopped) watch.request(SIGINT);
  }
  ~Reachable() {
    const std::lock_guard lock(mutex_);
    place_ = nullptr;
  }
  Reachable(const Reachable&) = delete;
  Reachable& operator=(const Reachable&) = delete;

 private:
  std::mutex& mutex_;
  InterruptWatch*& place_;
};

}  // namespace

NativeTraining::NativeTraining(const Words& words, const Words& plugins) : registries_(registries_with(plugins)) {
  const config::CommandLine line = line_of(words);
  resolved_ = config::resolve(line, kWorldSize, registries_->known_names());
  init_from_ = text_flag(line, "init_from");
}

std::string NativeTraining::config() const { return config_json(resolved_.config).dump(); }

std::string NativeTraining::run() {
  const TrainingTurn turn;
  const SignalStack stack;  // for the handlers of Python
  InterruptWatch interrupt(InterruptWatch::Watched::None);
  const Reachable reachable(mutex_, interrupt_, interrupt, is_stopped_);
  const train::RunOutcome outcome = train(interrupt);
  return Json{{"completed", outcome.completed}, {"steps", outcome.iterations}, {"folder", outcome.folder.string()}}.dump();
}

train::RunOutcome NativeTraining::train(const InterruptWatch& interrupt) {
  return train::run_hosted({.resolved = resolved_,
                            .registries = *registries_,
                            .interrupt = interrupt,
                            .init_from = init_from_,
                            .listener = this,
                            .warn = [this](const std::string& text) { warn(text); }});
}

void NativeTraining::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  if (interrupt_ != nullptr) interrupt_->request(SIGINT);
}

Words NativeTraining::take() {
  const std::lock_guard lock(mutex_);
  if (!newest_step_.empty()) news_.push_back(std::exchange(newest_step_, {}));
  return std::exchange(news_, {});
}

void NativeTraining::stepped(const train::ReachedStep& at) {
  const std::string text = step_json("step", at).dump();
  const std::lock_guard lock(mutex_);
  newest_step_ = text;
}

void NativeTraining::validated(const train::ReachedStep& at, double train_loss, double valid_loss, double rate) {
  Json json = step_json("epoch", at);
  json["train_loss"] = train_loss;
  json["valid_loss"] = valid_loss;
  json["rate"] = rate;
  const std::lock_guard lock(mutex_);
  if (!newest_step_.empty()) news_.push_back(std::exchange(newest_step_, {}));
  news_.push_back(json.dump());
}

void NativeTraining::warn(const std::string& text) {
  const std::lock_guard lock(mutex_);
  news_.push_back(Json{{"kind", "warning"}, {"text", text}}.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace welkin::apps::python
