// SPDX-License-Identifier: Apache-2.0
// Planner facts of a run: its model's cost and its data's size. The caller provides the machine.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "apps/cli/application.h"
#include "config/flags/command_line.h"
#include "config/schema/choices.h"
#include "model/base/model.h"
#include "plan/run_estimate.h"
#include "train/learn/registries.h"
#include "train/step/stages.h"

namespace welkin::apps {

// What estimates of one model share, for a search over many layouts on several threads. The first that needs a member makes it,
// under the mutex; afterwards it is only read.
struct EstimateMemo {
  std::mutex mutex;
  std::optional<train::DatasetFacts> data;
  std::optional<model::ModelPtr> model;  // for names and shapes: nothing writes to its parameters, so they take no memory
  std::optional<train::ModelOutline> outline;
  std::optional<int64_t> frozen_parameters;
  struct ScheduleFacts {
    std::vector<double> held;  // by rank, as in parallel::held_with_waiting()
    double idle = 0;
  };
  std::map<std::tuple<config::PipelineSchedule, int64_t, int64_t>, ScheduleFacts> schedules;  // by kind, ranks and micro-batches
};

struct EstimateOptions {
  int64_t world = 1;
  std::optional<double> flops_per_second{};  // of a device; nothing: no times
  int64_t node_devices = 0;                  // ranks of a node; 0: all of them
  EstimateMemo* memo = nullptr;              // of estimates that differ in their layouts alone; null: of this one
};

// Opens the data where the keys alone do not give its size. ConfigError for a model without a cost.
plan::RunEstimate estimate_of(const Application& application, const config::CommandLine& line, const EstimateOptions& options);

// ConfigError if the model cannot be split over so many processes as configured: too many stages, or an axis that its plan does
// not split. Checks nothing where only the data give its shape.
void check_layout_of(const train::Registries& registries, const config::RunConfig& config, int64_t world);

}  // namespace welkin::apps
