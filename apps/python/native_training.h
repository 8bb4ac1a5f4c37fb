// SPDX-License-Identifier: Apache-2.0
// A run that Python starts: `welkin train FLAGS` of one process inside of the interpreter's. One thread runs it, others ask how
// far it is and stop it.
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
  // `words`: flags of `welkin train`. Everything that can be wrong with them is said here.
  NativeTraining(const Words& words, const Words& plugins);

  std::string config() const;  // config_json()
  // To the end, or to where stop() leads. {"completed", "steps", "folder"}. Once.
  std::string run();
  // The step under way is finished, and a checkpoint saved. Any thread.
  void stop();
  // What happened since the last call, oldest first: {"kind": "step", "step", "total_steps", "epoch"} (of several steps the
  // newest), {"kind": "epoch", ..., "train_loss", "valid_loss", "rate"}, {"kind": "warning", "text"}. Any thread.
  Words take();

 private:
  void stepped(const train::ReachedStep& at) override;
  void validated(const train::ReachedStep& at, double train_loss, double valid_loss, double rate) override;
  void warn(const std::string& text);
  train::RunOutcome train(const InterruptWatch& interrupt);

  std::shared_ptr<train::Registries> registries_;
  config::Resolved resolved_;
  std::string init_from_;
  std::mutex mutex_;                     // of all below
  InterruptWatch* interrupt_ = nullptr;  // while it runs
  bool is_stopped_ = false;
  Words news_;
  std::string newest_step_;  // not in news_ yet; empty: none
};

}  // namespace welkin::apps::python
