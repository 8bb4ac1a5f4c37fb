// SPDX-License-Identifier: Apache-2.0
#include "bench/step/trials.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include "bench/step/step_report.h"
#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "observe/log/table.h"
#include "observe/plot/plot.h"
#include "train/device/device.h"
#include "train/device/memory_limit.h"
#include "train/device/process_settings.h"

namespace welkin::bench {
namespace {

constexpr double kShortStep = 1;  // seconds

std::string out_of_memory_note(const train::MemoryError& error) {
  const auto text = [](int64_t bytes) { return bytes > 0 ? format_bytes(static_cast<uint64_t>(bytes)) : "unknown"; };
  return cat("out of memory: requested=", text(error.use().requested), ", limit=", text(error.use().limit));
}

class TrialRun {
 public:
  TrialRun(StepMode mode, const StepBenchContext& context) : mode_(mode), context_(context) {}

  TrialRow measure(const Trial& trial) {
    TrialRow row{.name = trial.name, .note = trial.note, .rates = {}};
    if (!trial.config) return row;
    if (is_interrupted_) return {.name = trial.name, .note = "not measured: interrupted", .rates = {}};
    try {
      take(row, report_of(trial));
    } catch (const ConfigError& error) {
      row.note = error.what();
    } catch (const DataError& error) {
      if (context_.world.size() > 1) throw;  // the others wait in a collective
      row.note = error.what();
    } catch (const train::MemoryError& error) {
      if (context_.world.size() > 1) throw;  // the others wait in a collective
      row.note = out_of_memory_note(error);
    } catch (const Interrupted&) {
      if (!has_figure_) throw;
      is_interrupted_ = true;
      row.note = "not measured: interrupted";
    }
    return row;
  }

 private:
  StepReport report_of(const Trial& trial) {
    StepBenchContext context = context_;
    context.device = trial.device.value_or(context_.device);
    const train::ProcessSession session(*trial.config, context.device);
    StepReport report = run_step_bench(*trial.config, mode_, context);
    // The first run pays for threads, pages and code, and all others are compared with it, so it is repeated.
    const bool is_worth_more = !has_figure_ && context_.world.size() == 1 && report.first_step_seconds < kShortStep;
    return is_worth_more ? run_step_bench(*trial.config, mode_, context) : report;
  }

  void take(TrialRow& row, const StepReport& report) {
    row.rates = report.rates;
    row.flops_per_second = flops_per_second(report);
    row.peak_bytes = std::max<int64_t>(0, report.memory.peak());
    has_figure_ = true;
  }

  StepMode mode_;
  const StepBenchContext& context_;
  bool has_figure_ = false, is_interrupted_ = false;
};

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
  TrialRun run(mode, context);
  std::vector<TrialRow> rows;
  for (const Trial& trial : trials) rows.push_back(run.measure(trial));
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

namespace {

constexpr int kPanelHeight = 320;

// One panel of the plot: a number for each row that has figures.
struct TrialPanel {
  std::string axis;
  std::function<double(const TrialRow&)> value;
  bool has_spread = false;  // the panel shows the spread of the rates' windows
};

std::vector<TrialPanel> panels_of(const std::vector<TrialRow>& rows) {
  constexpr double kMib = 1 << 20, kGib = 1 << 30;
  double most = 0;
  for (const TrialRow& row : rows) most = std::max(most, static_cast<double>(row.peak_bytes));
  const bool is_large = most >= kGib;
  const double base = first_rate(rows).value_or(1);
  return {{"samples/s", [](const TrialRow& row) { return row.rates->median(); }, /*has_spread=*/true},
          {"ratio to the first", [base](const TrialRow& row) { return row.rates->median() / base; }},
          {is_large ? "peak memory, GiB" : "peak memory, MiB",
           [unit = is_large ? kGib : kMib](const TrialRow& row) { return static_cast<double>(row.peak_bytes) / unit; }}};
}

std::string bars(const TrialPanel& panel, const std::vector<TrialRow>& rows) {
  observe::BarPlot plot;
  plot.y.title = panel.axis;
  plot.series = {panel.axis};
  plot.height = kPanelHeight;
  for (const TrialRow& row : rows) {
    if (row.rates) plot.groups.push_back({row.name, {panel.value(row)}});
  }
  return observe::svg(plot);
}

std::string curve(const TrialPanel& panel, const std::vector<TrialRow>& rows, const std::string& axis,
                  const std::vector<double>& places) {
  observe::LinePlot plot;
  plot.x = {.title = axis, .ticks = places};
  plot.y = {.title = panel.axis, .low = 0.0};
  plot.height = kPanelHeight;
  const auto [least, most] = std::ranges::minmax(places);
  if (least > 0 && most >= 8 * least) plot.x.scale = observe::PlotScale::Log;
  observe::Curve& line = plot.curves.emplace_back();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].rates) continue;
    const double value = panel.value(rows[i]);
    line.x.push_back(places[i]);
    line.y.push_back(value);
    line.low.push_back(panel.has_spread ? rows[i].rates->min() : value);
    line.high.push_back(panel.has_spread ? rows[i].rates->max() : value);
  }
  return observe::svg(plot);
}

}  // namespace

std::string trials_svg(const std::string& title, const std::vector<TrialRow>& rows) {
  std::vector<std::string> pages;
  for (const TrialPanel& panel : panels_of(rows)) pages.push_back(bars(panel, rows));
  return observe::stacked(title, pages);
}

std::string trials_svg(const std::string& title, const std::vector<TrialRow>& rows, const std::string& axis,
                       const std::vector<double>& places) {
  std::vector<std::string> pages;
  for (const TrialPanel& panel : panels_of(rows)) pages.push_back(curve(panel, rows, axis, places));
  return observe::stacked(title, pages);
}

const TrialRow* fastest(const std::vector<TrialRow>& rows) {
  const TrialRow* first = nullptr;
  const TrialRow* best = nullptr;
  for (const TrialRow& row : rows) {
    if (!row.rates) continue;
    if (first == nullptr) first = best = &row;
    const bool is_faster = row.rates->min() > first->rates->max();
    if (is_faster && row.rates->median() > best->rates->median()) best = &row;
  }
  return best;
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

}  // namespace welkin::bench
