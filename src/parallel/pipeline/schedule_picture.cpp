// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/schedule_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <optional>
#include <sstream>
#include <vector>

#include "core/text.h"
#include "observe/plot/plot.h"

namespace welkin::parallel {
namespace {

std::string name_of_pass(const Pass& pass, const PipelineShape& shape) {
  constexpr std::array kLetters{'F', 'B', 'I', 'W'};
  const std::string name = cat(kLetters[static_cast<size_t>(pass.kind)], pass.micro);
  return shape.chain() == shape.ranks ? name : cat(name, ".", pass.stage / shape.ranks);
}

std::string heading(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  return cat(
      config::name_of(schedule.kind), ": ", shape.ranks, shape.ranks == 1 ? " rank, " : " ranks, ", shape.micros,
      shape.micros == 1 ? " micro-batch" : " micro-batches", shape.chunks > 1 ? cat(", ", shape.chunks, " chunks per rank") : "",
      shape.leads > 1 ? cat(", ", shape.leads, " steps of the model", shape.only_last ? ", a gradient of the last" : "") : "");
}

std::string percent(double share) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << 100 * share << " %";
  return out.str();
}

// The columns of one rank; a unit is 1/chunks of the costs' unit.
std::vector<std::string> slots_of(const std::vector<TimedPass>& row, const Schedule& schedule, size_t columns) {
  std::vector<std::string> slots(columns, std::string(1, '.'));
  const auto column = [&](double time) {
    return static_cast<size_t>(std::llround(time * static_cast<double>(schedule.shape.chunks)));
  };
  for (const TimedPass& timed : row) {
    for (size_t at = column(timed.begin); at < std::min(column(timed.end), columns); ++at) slots[at].assign(1, '-');
    if (column(timed.begin) < columns) slots[column(timed.begin)] = name_of_pass(timed.pass, schedule.shape);
  }
  return slots;
}

bool has_halves(const Schedule& schedule) { return schedule.kind == config::PipelineSchedule::ZeroBubble; }

// Colours show steps of the model and chunks, since a box has room for one number.
std::vector<std::string> kinds_of(const Schedule& schedule) {
  const PipelineShape& shape = schedule.shape;
  constexpr std::array kPasses{"forward", "backward", "of input", "of weights"};
  if (shape.chain() == shape.ranks) return {kPasses.begin(), kPasses.end()};
  std::vector<std::string> kinds;
  for (int64_t stage = 0; stage < shape.chain(); stage += shape.ranks) {
    const std::string step = shape.leads > 1 ? cat(", step ", shape.lead_of(stage)) : "";
    const std::string chunk = shape.chunks > 1 ? cat(", chunk ", shape.chunk_of(stage)) : "";
    for (size_t kind = 0; kind < (has_halves(schedule) ? 4 : 2); ++kind) kinds.push_back(cat(kPasses[kind], step, chunk));
  }
  return kinds;
}

size_t kind_of(const Pass& pass, const Schedule& schedule) {
  const size_t of_turn = has_halves(schedule) ? 4 : 2;
  return of_turn * static_cast<size_t>(pass.stage / schedule.shape.ranks) + static_cast<size_t>(pass.kind);
}

std::string figures_line(const Schedule& schedule, const ScheduleTiming& timing, const PassCosts& costs) {
  std::vector<std::string> held;
  for (const double micros : timing.held) {
    std::ostringstream number;
    number << micros;
    held.push_back(number.str());
  }
  const std::optional<double> promised = promised_bubble(schedule.kind, schedule.shape, costs);
  return cat("idle ", percent(timing.bubble), " of the time", promised ? cat(" (formula: ", percent(*promised), ")") : "",
             "; activations of ", join(held, " "), schedule.shape.leads > 1 ? " steps of" : "", " micro-batches held at once\n");
}

}  // namespace

std::string schedule_text(const Schedule& schedule, const PassCosts& costs) {
  const ScheduleTiming timing = time_schedule(schedule, costs);
  const auto columns = static_cast<size_t>(std::llround(timing.length * static_cast<double>(schedule.shape.chunks)));
  std::vector<std::vector<std::string>> rows;
  size_t width = 0;
  for (const auto& row : timing.rows) {
    rows.push_back(slots_of(row, schedule, columns));
    for (const std::string& slot : rows.back()) width = std::max(width, slot.size());
  }
  std::ostringstream out;
  out << heading(schedule) << "\n" << std::left;
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    std::ostringstream line;
    line << std::left << "rank " << std::setw(3) << rank;
    for (const std::string& slot : rows[rank]) line << " " << std::setw(static_cast<int>(width)) << slot;
    std::string text = line.str();
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << "\n";
  }
  out << figures_line(schedule, timing, costs);
  return out.str();
}

std::string schedule_svg(const Schedule& schedule, const PassCosts& costs) {
  const ScheduleTiming timing = time_schedule(schedule, costs);
  observe::LanePlot plot{.title = heading(schedule), .kinds = kinds_of(schedule), .lanes = {}};
  for (size_t rank = 0; rank < timing.rows.size(); ++rank) {
    observe::Lane lane{.label = cat("rank ", rank), .boxes = {}};
    for (const TimedPass& timed : timing.rows[rank]) {
      lane.boxes.push_back(
          {.begin = timed.begin, .end = timed.end, .text = cat(timed.pass.micro), .kind = kind_of(timed.pass, schedule)});
    }
    plot.lanes.push_back(std::move(lane));
  }
  return observe::svg(plot);
}

}  // namespace welkin::parallel
