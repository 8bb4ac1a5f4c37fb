// SPDX-License-Identifier: Apache-2.0
// A run that Python starts: `welkin train FLAGS` as one process, within the interpreter's. One thread runs it; others ask for
// its progress and stop it.
#pragma once

#include <torch/custom_class.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apps/python/native_model.h"
#include "config/resolve/resolve.h"
#include "core/process/signals.h"
#include "train/learn/registries.h"
#include "train/run/trainer_context.h"

namespace welkin::apps::python {

class NativeTraining : public torch::CustomClassHolder, private train::RunListener {
 public:
  // `words`: flags of `welkin train`. All errors in them are thrown here.
  NativeTraining(const Words& words, const Words& plugins);

  std::string config() const;  // config_json()
  // Runs to the end, or until stop(). Returns {"completed", "steps", "folder"}. Call it once.
  std::string run();
  // Finishes the current step and saves a checkpoint. Any thread.
  void stop();
  // Events since the last call, oldest first: {"kind": "step", "step", "total_steps", "epoch"} (only the newest
  // step), {"kind": "epoch", ..., "train_loss", "valid_loss", "rate"}, {"kind": "warning", "text"}. Any thread.
  Words take();

 private:
  void stepped(const train::ReachedStep& at) override;
  void validated(const train::ReachedStep& at, double train_loss, double valid_loss, double rate) override;
  void warn(const std::string& text);
  train::RunOutcome train(const InterruptWatch& interrupt);

  std::shared_ptr<train::Registries> registries_;
  config::Resolved resolved_;
  std::string init_from_;
  std::mutex mutex_;                     // guards all members below
  InterruptWatch* interrupt_ = nullptr;  // set while it runs
  bool is_stopped_ = false;
  Words news_;
  std::string newest_step_;  // not in news_ yet; empty: none
};

}  // namespace welkin::apps::python
