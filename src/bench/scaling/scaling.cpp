// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling/scaling.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "observe/log/table.h"
#include "observe/plot/plot.h"

namespace welkin::bench {
namespace {

using observe::Curve;
using observe::LinePlot;
using observe::PlotScale;

double or_gap(Rate value) { return value ? *value : std::numeric_limits<double>::quiet_NaN(); }

std::string scaling_number(double value, const char* format) {
  if (!std::isfinite(value)) return "-";
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string samples_text(double rate) { return scaling_number(rate, rate < 1000 ? "%.4g" : "%.0f"); }

// NaN (a gap in the curve) where the batch or the rate is not known.
double step_seconds(const ScalingRow& row, Rate rate) {
  return row.batch > 0 ? static_cast<double>(row.batch) / or_gap(rate) : or_gap({});
}

// One curve for measured rows, and a dashed one for predicted rows.
template <typename Value>
void add_curves(LinePlot& plot, const ScalingTable& table, const std::string& label, Value value) {
  Curve measured{.label = label};
  Curve predicted{.label = label + ", predicted", .dashed = true};
  const ScalingRow* last = nullptr;
  for (const ScalingRow& row : table.rows) {
    const double y = value(row);
    if (!row.predicted) {
      measured.x.push_back(static_cast<double>(row.ranks));
      measured.y.push_back(y);
      last = &row;
      continue;
    }
    if (!std::isfinite(y)) continue;
    if (predicted.x.empty() && last != nullptr) {
      predicted.x.push_back(static_cast<double>(last->ranks));
      predicted.y.push_back(value(*last));
    }
    predicted.x.push_back(static_cast<double>(row.ranks));
    predicted.y.push_back(y);
  }
  if (std::ranges::any_of(measured.y, [](double y) { return std::isfinite(y); })) plot.curves.push_back(std::move(measured));
  if (!predicted.x.empty()) plot.curves.push_back(std::move(predicted));
}

LinePlot plot_over_ranks(const ScalingTable& table, const std::string& title, const std::string& unit, PlotScale scale) {
  LinePlot plot{.title = cat(title, ", ", scaling_name(table.kind), " scaling"),
                .x = {.title = "ranks", .scale = PlotScale::Log},
                .y = {.title = unit, .scale = scale}};
  for (const ScalingRow& row : table.rows) {
    if (plot.x.ticks.empty() || plot.x.ticks.back() != static_cast<double>(row.ranks)) {
      plot.x.ticks.push_back(static_cast<double>(row.ranks));
    }
  }
  if (scale == PlotScale::Linear) plot.y.low = 0;
  return plot;
}

std::string throughput_plot(const ScalingTable& table) {
  LinePlot plot = plot_over_ranks(table, "Throughput", "samples/s", PlotScale::Log);
  add_curves(plot, table, "IO", [](const ScalingRow& row) { return or_gap(row.io); });
  add_curves(plot, table, "SYNTHETIC", [](const ScalingRow& row) { return or_gap(row.synthetic); });
  add_curves(plot, table, "FULL", [](const ScalingRow& row) { return or_gap(row.full); });
  const ScalingRow& first = table.rows.front();
  if (first.synthetic) {
    Curve ideal{.label = "ideal", .dashed = true, .markers = false};
    for (const ScalingRow& row : table.rows) {
      ideal.x.push_back(static_cast<double>(row.ranks));
      ideal.y.push_back(*first.synthetic * static_cast<double>(row.ranks) / static_cast<double>(first.ranks));
    }
    plot.curves.push_back(std::move(ideal));
  }
  return svg(plot);
}

nlohmann::ordered_json or_null(Rate value) { return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(); }

Rate number_at(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? Rate(found->get<double>()) : Rate();
}

// The mean over benchy's trials of one kind.
Rate trials_at(const nlohmann::json& json, const char* kind) {
  const auto found = json.find(kind);
  if (found == json.end() || !found->is_object() || !found->contains("trial_throughput")) return {};
  const nlohmann::json& trials = found->at("trial_throughput");
  if (!trials.is_array() || trials.empty()) return {};
  double sum = 0;
  for (const nlohmann::json& trial : trials) {
    if (!trial.is_number()) return {};
    sum += trial.get<double>();
  }
  return sum / static_cast<double>(trials.size());
}

int64_t count_at(const nlohmann::json& json, const char* key) {
  const double value = number_at(json, key).value_or(0);
  return value >= 0 && value < 1e15 ? static_cast<int64_t>(value) : 0;
}

ScalingRow row_of(const nlohmann::json& json) {
  if (json.contains("nranks")) {
    return {.ranks = count_at(json, "nranks"),
            .io = trials_at(json, "IO"),
            .synthetic = trials_at(json, "SYNTHETIC"),
            .full = trials_at(json, "FULL")};
  }
  return {.ranks = count_at(json, "ranks"),
          .batch = count_at(json, "global_batch_size"),
          .io = number_at(json, "io_samples_per_s"),
          .synthetic = number_at(json, "synthetic_samples_per_s"),
          .full = number_at(json, "full_samples_per_s"),
          .nocomm = number_at(json, "nocomm_samples_per_s"),
          .gradient_bytes = count_at(json, "exchanged_bytes_per_step")};
}

// Weak scaling needs equal samples per rank, strong scaling equal samples in all.
void check_batches(const ScalingTable& table) {
  const ScalingRow& first = table.rows.front();
  for (const ScalingRow& row : table.rows) {
    if (row.batch == 0 || first.batch == 0) continue;
    const bool is_weak = table.kind == ScalingKind::Weak;
    if (is_weak ? row.batch * first.ranks == first.batch * row.ranks : row.batch == first.batch) continue;
    throw DataError("bench",
                    cat("these measurements are not of ", scaling_name(table.kind), " scaling: ranks=", first.ranks,
                        ", batch=", first.batch, "; ranks=", row.ranks, ", batch=", row.batch),
                    is_weak ? "Give runs with one batch per rank (--local_batch_size)"
                            : "Give runs with one batch in all (--global_batch_size)");
  }
}

}  // namespace

const char* scaling_name(ScalingKind kind) { return kind == ScalingKind::Weak ? "weak" : "strong"; }

std::optional<double> ScalingTable::efficiency(const ScalingRow& row, Rate ScalingRow::*rate) const {
  const ScalingRow& first = rows.front();
  if (!(row.*rate) || !(first.*rate)) return {};
  return *(row.*rate) / static_cast<double>(row.ranks) / (*(first.*rate) / static_cast<double>(first.ranks));
}

std::optional<double> communication_fraction(const ScalingRow& row) {
  if (!row.synthetic || !row.nocomm) return {};
  return std::max(0.0, 1 - *row.synthetic / *row.nocomm);
}

ScalingRow read_scaling_row(const std::string& path) {
  std::ifstream in(path);
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (in.is_open() && json.is_object()) {
    const ScalingRow row = row_of(json);
    if (row.ranks > 0 && (row.io || row.synthetic || row.full)) return row;
  }
  throw DataError("bench", cat("this is no measurement of a number of ranks: path=", path),
                  "Give files that welkin bench --mode all --json FILE or train --enable_benchy has written");
}

void add_noddp(std::vector<ScalingRow>& rows, const std::vector<ScalingRow>& noddp) {
  for (const ScalingRow& row : noddp) {
    const auto same = std::ranges::find(rows, row.ranks, &ScalingRow::ranks);
    if (same == rows.end() || !row.synthetic) {
      throw DataError("bench", cat("a --noddp run has no matching run with communication: ranks=", row.ranks),
                      "Give both files of each number of ranks, with SYNTHETIC in them");
    }
    same->nocomm = row.synthetic;
  }
}

ScalingTable scaling_table(ScalingKind kind, std::vector<ScalingRow> rows) {
  std::ranges::stable_sort(rows, {}, &ScalingRow::ranks);
  ScalingTable table{.kind = kind, .rows = {}};
  for (const ScalingRow& row : rows) {
    if (!table.rows.empty() && table.rows.back().ranks == row.ranks) table.rows.pop_back();
    table.rows.push_back(row);
  }
  if (table.rows.empty())
    throw DataError("bench", "there is no measurement to make a scaling table of", "Measure one number of ranks");
  check_batches(table);
  return table;
}

void predict_rows(ScalingTable& table, const plan::LinkFit& exchange, const std::vector<int64_t>& ranks) {
  const auto largest = std::ranges::find_if(table.rows.rbegin(), table.rows.rend(), [](const ScalingRow& row) {
    return row.ranks > 1 && row.batch > 0 && row.gradient_bytes > 0 && row.synthetic && row.nocomm;
  });
  if (largest == table.rows.rend()) {
    throw DataError(
        "bench", "larger machines cannot be predicted: SYNTHETIC and NOCOMM of at least two ranks by bench --mode all are needed",
        "Measure more ranks, or leave out --predict");
  }
  const ScalingRow base = *largest;
  const double compute = step_seconds(base, base.nocomm);
  const double exposed = std::max(0.0, step_seconds(base, base.synthetic) - compute);
  const double sent = exchange.seconds(base.gradient_bytes, base.ranks);
  const double exposed_share = sent > 0 ? std::min(1.0, exposed / sent) : 0;
  const double beyond = std::max(0.0, exposed - sent);
  for (const int64_t count : ranks) {
    if (count <= table.rows.back().ranks) continue;
    const double growth = static_cast<double>(count) / static_cast<double>(base.ranks);
    ScalingRow row{.ranks = count, .batch = base.batch, .gradient_bytes = base.gradient_bytes, .predicted = true};
    double own_compute = compute;
    if (table.kind == ScalingKind::Weak) {
      row.batch = std::llround(static_cast<double>(base.batch) * growth);
    } else {
      own_compute /= growth;
    }
    row.nocomm = static_cast<double>(row.batch) / own_compute;
    const double waits = beyond + exposed_share * exchange.seconds(row.gradient_bytes, count);
    row.synthetic = static_cast<double>(row.batch) / (own_compute + waits);
    table.rows.push_back(row);
  }
}

std::string scaling_text(const ScalingTable& table) {
  std::vector<observe::Column> columns;
  for (const char* title :
       {"ranks", "batch", "IO", "SYNTHETIC", "FULL", "NOCOMM", "efficiency %", "communication %", "step ms"}) {
    columns.push_back({title, observe::Align::Right});
  }
  columns.push_back({"", observe::Align::Left});
  observe::Table text(std::move(columns));
  for (const ScalingRow& row : table.rows) {
    const double step = 1e3 * step_seconds(row, row.synthetic);
    text.add_row({cat(row.ranks), row.batch > 0 ? cat(row.batch) : "-", samples_text(or_gap(row.io)),
                  samples_text(or_gap(row.synthetic)), samples_text(or_gap(row.full)), samples_text(or_gap(row.nocomm)),
                  scaling_number(100 * or_gap(table.efficiency(row, &ScalingRow::synthetic)), "%.1f"),
                  scaling_number(100 * or_gap(communication_fraction(row)), "%.1f"), scaling_number(step, "%.4g"),
                  row.predicted ? "predicted" : ""});
  }
  return cat(scaling_name(table.kind), " scaling, samples/s of all ranks\n", text.text());
}

nlohmann::ordered_json scaling_json(const ScalingTable& table) {
  nlohmann::ordered_json json{{"scaling", scaling_name(table.kind)}, {"rows", nlohmann::ordered_json::array()}};
  for (const ScalingRow& row : table.rows) {
    json["rows"].push_back({{"ranks", row.ranks},
                            {"global_batch_size", row.batch > 0 ? nlohmann::ordered_json(row.batch) : nlohmann::ordered_json()},
                            {"io_samples_per_s", or_null(row.io)},
                            {"synthetic_samples_per_s", or_null(row.synthetic)},
                            {"full_samples_per_s", or_null(row.full)},
                            {"nocomm_samples_per_s", or_null(row.nocomm)},
                            {"efficiency", or_null(table.efficiency(row, &ScalingRow::synthetic))},
                            {"full_efficiency", or_null(table.efficiency(row, &ScalingRow::full))},
                            {"communication_fraction", or_null(communication_fraction(row))},
                            {"exchanged_bytes_per_step", row.gradient_bytes},
                            {"predicted", row.predicted}});
  }
  return json;
}

std::vector<std::pair<std::string, std::string>> scaling_plots(const ScalingTable& table) {
  LinePlot efficiency = plot_over_ranks(table, "Efficiency", "% of ideal", PlotScale::Linear);
  const auto add_efficiency = [&](const char* label, Rate ScalingRow::*rate) {
    add_curves(efficiency, table, label,
               [&table, rate](const ScalingRow& row) { return 100 * or_gap(table.efficiency(row, rate)); });
  };
  add_efficiency("SYNTHETIC", &ScalingRow::synthetic);
  add_efficiency("FULL", &ScalingRow::full);
  LinePlot communication = plot_over_ranks(table, "Communication", "% of a step", PlotScale::Linear);
  add_curves(communication, table, "1 - SYNTHETIC / NOCOMM",
             [](const ScalingRow& row) { return 100 * or_gap(communication_fraction(row)); });
  LinePlot steps = plot_over_ranks(table, "Step time", "ms", PlotScale::Log);
  const auto add_step = [&](const char* label, Rate ScalingRow::*rate) {
    add_curves(steps, table, label, [rate](const ScalingRow& row) { return 1e3 * step_seconds(row, row.*rate); });
  };
  add_step("SYNTHETIC", &ScalingRow::synthetic);
  add_step("FULL", &ScalingRow::full);
  add_step("NOCOMM", &ScalingRow::nocomm);
  return {{"throughput", throughput_plot(table)},
          {"efficiency", svg(efficiency)},
          {"communication", svg(communication)},
          {"step_time", svg(steps)}};
}

}  // namespace welkin::bench
