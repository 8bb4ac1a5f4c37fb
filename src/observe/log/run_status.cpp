// SPDX-License-Identifier: Apache-2.0
#include "observe/log/run_status.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/text.h"
#include "observe/log/event_log.h"

namespace welkin::observe {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(const std::optional<double>& value) { return value && std::isfinite(*value) ? Json(*value) : Json(); }

// Prometheus: escapes backslash, quote and line end inside of a label.
std::string label_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string prometheus_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.15g", value);
  return text.data();
}

}  // namespace

std::string status_json(const RunStatus& status) {
  Json events = Json::object();
  for (const auto& [name, count] : status.events) events[name] = count;
  const Json json = {{"state", status.state},
                     {"run", status.run},
                     {"host", status.host},
                     {"process", status.process},
                     {"ranks", status.ranks},
                     {"step", status.step},
                     {"total_steps", status.total_steps},
                     {"epoch", status.epoch},
                     {"loss", number_or_null(status.loss)},
                     {"learning_rate", number_or_null(status.learning_rate)},
                     {"samples_per_s", number_or_null(status.samples_per_s)},
                     {"seconds_left", number_or_null(status.seconds_left)},
                     {"last_checkpoint", status.last_checkpoint.empty() ? Json() : Json(status.last_checkpoint)},
                     {"checkpoint_interval", status.checkpoint_interval},
                     {"expected_goodput", number_or_null(status.expected_goodput)},
                     {"events", events},
                     {"error", status.error.empty() ? Json() : Json(status.error)},
                     {"time", utc_text(status.milliseconds)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string status_prometheus(const RunStatus& status) {
  const std::string run = cat("run=\"", label_text(status.run), "\"");
  std::string text;
  const auto gauge = [&](const std::string& name, const std::string& help, double value) {
    text += cat("# HELP welkin_", name, " ", help, "\n# TYPE welkin_", name, " gauge\nwelkin_", name, "{", run, "} ",
                prometheus_number(value), "\n");
  };
  gauge("step", "Optimizer steps done.", static_cast<double>(status.step));
  gauge("total_steps", "Optimizer steps of the whole run.", static_cast<double>(status.total_steps));
  gauge("epoch", "Epoch, from 1.", static_cast<double>(status.epoch));
  gauge("ranks", "Processes of the run.", static_cast<double>(status.ranks));
  if (status.loss) gauge("loss", "Loss of the latest step.", *status.loss);
  if (status.learning_rate) gauge("learning_rate", "Learning rate of the latest step.", *status.learning_rate);
  gauge("samples_per_second", "Samples trained on per second.", status.samples_per_s);
  if (status.seconds_left) gauge("seconds_left", "Time that the rest of the run takes.", *status.seconds_left);
  gauge("checkpoint_interval", "Steps between checkpoints, 0 for none on the way.",
        static_cast<double>(status.checkpoint_interval));
  if (status.expected_goodput) gauge("expected_goodput", "Share of the time that failures leave.", *status.expected_goodput);
  gauge("up", "1 while the run works.", status.state == "running" || status.state == "starting" ? 1 : 0);
  gauge("updated_seconds", "When this was written, in seconds since 1970.", static_cast<double>(status.milliseconds) / 1000);
  if (status.events.empty()) return text;
  text += "# HELP welkin_events_total Events of this process by name.\n# TYPE welkin_events_total counter\n";
  for (const auto& [name, count] : status.events) {
    text += cat("welkin_events_total{", run, ",event=\"", label_text(name), "\"} ", count, "\n");
  }
  return text;
}

void write_status(const std::filesystem::path& folder, const RunStatus& status) {
  write_file_atomically(folder / "status.json", status_json(status));
  write_file_atomically(folder / "metrics.prom", status_prometheus(status));
}

}  // namespace welkin::observe
