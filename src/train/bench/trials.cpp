// SPDX-License-Identifier: Apache-2.0
#include "train/bench/trials.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/error.h"
#include "core/host.h"
#include "core/text.h"
#include "observe/plot.h"
#include "observe/table.h"
#include "train/bench/step_report.h"
#include "train/device.h"

namespace welkin::train::bench {
namespace {

TrialRow run_trial(const Trial& trial, StepMode mode, const StepBenchContext& context) {
  TrialRow row{.name = trial.name, .note = trial.note, .rates = {}};
  if (!trial.config) return row;
  try {
    configure_torch(*trial.config);
    const StepReport report = run_step_bench(*trial.config, mode, context);
    row.rates = report.rates;
    row.flops_per_second = flops_per_second(report);
    row.peak_bytes = std::max<int64_t>(0, report.memory.resident_peak - report.memory.resident_before_model);
  } catch (const ConfigError& error) {
    row.note = error.what();
  }
  return row;
}

std::optional<double> first_rate(const std::vector<TrialRow>& rows) {
  for (const TrialRow& row : rows) {
    if (row.rates) return row.rates->median();
  }
  return {};
}

std::string trial_number(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

}  // namespace

std::vector<TrialRow> run_trials(const std::vector<Trial>& trials, StepMode mode, const StepBenchContext& context) {
  std::vector<TrialRow> rows;
  for (const Trial& trial : trials) rows.push_back(run_trial(trial, mode, context));
  return rows;
}

std::string trials_text(const std::string& title, const std::vector<TrialRow>& rows) {
  using observe::Align;
  observe::Table table({{title, Align::Left},
                        {"samples/s", Align::Right},
                        {"spread", Align::Right},
                        {"ratio", Align::Right},
                        {"peak memory", Align::Right},
                        {"", Align::Left}});
  const std::optional<double> base = first_rate(rows);
  for (const TrialRow& row : rows) {
    if (!row.rates) {
      table.add_row({row.name, "-", "-", "-", "-", row.note});
      continue;
    }
    const double rate = row.rates->median();
    table.add_row({row.name, trial_number("%.4g", rate), trial_number("%.1f %%", 100 * row.rates->spread()),
                   trial_number("%.2f", rate / *base), format_bytes(static_cast<uint64_t>(row.peak_bytes)), row.note});
  }
  return table.text();
}

std::string trials_svg(const std::string& title, const std::vector<TrialRow>& rows) {
  observe::BarPlot plot;
  plot.title = title;
  plot.y.title = "samples/s";
  plot.series = {"samples/s"};
  for (const TrialRow& row : rows) {
    if (row.rates) plot.groups.push_back({row.name, {row.rates->median()}});
  }
  return observe::svg(plot);
}

nlohmann::ordered_json trials_json(const std::vector<TrialRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::optional<double> base = first_rate(rows);
  for (const TrialRow& row : rows) {
    nlohmann::ordered_json one{{"name", row.name}, {"note", row.note}};
    if (row.rates) {
      one["samples_per_s"] = row.rates->median();
      one["samples_per_s_spread"] = row.rates->spread();
      one["ratio"] = row.rates->median() / *base;
      one["flops_per_s"] = row.flops_per_second;
      one["peak_bytes"] = row.peak_bytes;
    }
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace welkin::train::bench
