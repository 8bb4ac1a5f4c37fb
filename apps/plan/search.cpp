// SPDX-License-Identifier: Apache-2.0
// welkin plan search: estimates every layout of a run over a number of devices, and lists the fastest that fit.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/flags.h"
#include "apps/cli/help.h"
#include "apps/cli/run_estimate.h"
#include "apps/cli/verbs.h"
#include "config/flags/command_line.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output_check.h"
#include "core/process/host.h"
#include "core/text.h"
#include "observe/log/console.h"
#include "observe/log/progress.h"
#include "observe/log/table.h"
#include "plan/layouts.h"
#include "plan/state_bytes.h"
#include "plan/step_time.h"

namespace welkin::apps {
namespace {

constexpr double kGiga = 1e9, kMicro = 1e-6;

const std::vector<config::ExtraFlag> kSearchFlags = {
    {"devices", "N", "devices that work together"},
    {"node_devices", "N", "devices of a node (8)"},
    {"memory_gib", "GIB", "memory of a device that a run may take"},
    {"rate", "TFLOPS", "measured TFLOP/s of a device in this model: welkin bench"},
    {"node_gbs", "GB/S", "bandwidth between the devices of a node, for each: welkin bench collectives"},
    {"network_gbs", "GB/S", "bandwidth between nodes, for each device"},
    {"latency_us", "US", "latency of a message (10)"},
    {"top", "N", "number of layouts to list (10)"},
    {"all", "", "list every variant of a mesh, not the fastest alone"},
    {"json", "FILE", "write the listed layouts as JSON to this file; - prints them instead of the table"}};

std::string rounded(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return text.data();
}

struct Ranked {
  plan::LayoutChoice layout;
  plan::StepTime time;
  double memory_gib = 0;
  int64_t batch = 0;

  double samples_per_second() const { return static_cast<double>(batch) / time.total(); }
};

struct Found {
  std::vector<Ranked> fitting;
  int64_t too_large = 0;
  double smallest_gib = std::numeric_limits<double>::infinity();  // of those that are too large
  std::map<std::string, int64_t> refused;                         // by the first words of the reason
  std::optional<ConfigError> first_refusal;

  void add(Found&& other) {
    std::ranges::move(other.fitting, std::back_inserter(fitting));
    too_large += other.too_large;
    smallest_gib = std::min(smallest_gib, other.smallest_gib);
    for (const auto& [reason, count] : other.refused) refused[reason] += count;
    if (!first_refusal) first_refusal = std::move(other.first_refusal);
  }
};

double needed(const config::CommandLine& line, const char* flag, const char* why) {
  const double value = number_flag(line, flag, 0, 0, 1e12);
  if (value > 0) return value;
  throw ConfigError("plan", cat(why, ": --", flag), cat("Give --", flag));
}

plan::Machine machine_of(const config::CommandLine& line, int64_t devices, int64_t node_devices) {
  plan::Machine machine{.flops_per_second = needed(line, "rate", "the speed of a device is not said") * 1e12,
                        .latency_s = number_flag(line, "latency_us", 10, 0, 1e6) * kMicro};
  if (devices > 1 && node_devices > 1)
    machine.node_bytes_per_second = needed(line, "node_gbs", "the bandwidth within a node is not said") * kGiga;
  if (devices > node_devices)
    machine.network_bytes_per_second = needed(line, "network_gbs", "the bandwidth between nodes is not said") * kGiga;
  return machine;
}

// What is searched: the same for every mesh.
class Search {
 public:
  Search(const Application& application, const config::CommandLine& line)
      : application_(application),
        line_(line),
        devices_(whole_flag(line, "devices", 1, 1, 1'000'000)),
        node_devices_(std::min(devices_, whole_flag(line, "node_devices", 8, 1, 1'000'000))),
        machine_(machine_of(line, devices_, node_devices_)),
        memory_gib_(needed(line, "memory_gib", "the memory of a device is not said")) {
    if (devices_ % node_devices_ != 0) {
      throw ConfigError("plan", cat("nodes are not whole: devices=", devices_, ", node_devices=", node_devices_),
                        "Take a multiple of the devices of a node");
    }
    space_ = {.devices = devices_, .node_devices = node_devices_, .given = [this](const std::string& key) { return given(key); }};
  }

  // On all cores, since meshes are independent. The result does not depend on their number.
  Found run() const {
    const std::vector<plan::LayoutChoice> meshes = plan::meshes(space_);
    std::vector<Found> found(meshes.size());
    observe::Console console({.fd = STDERR_FILENO});
    observe::Progress progress(
        console, {.title = "plan search", .total = static_cast<int64_t>(meshes.size()), .unit = "meshes", .now_s = {}});
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    int64_t done = 0;
    EstimateMemo memo;
    const auto work = [&] {
      for (size_t i = next++; i < meshes.size(); i = next++) {
        found[i] = search(meshes[i], memo);
        const std::lock_guard lock(mutex);
        progress.update(++done);
      }
    };
    const auto num_threads = std::min(static_cast<size_t>(usable_cores()), meshes.size());
    std::vector<std::future<void>> threads;
    for (size_t i = 1; i < num_threads; ++i) threads.push_back(std::async(std::launch::async, work));
    work();
    for (std::future<void>& thread : threads) thread.get();
    progress.finish();
    Found all;
    for (Found& each : found) all.add(std::move(each));
    std::ranges::stable_sort(all.fitting, {}, [](const Ranked& each) { return std::pair(each.time.total(), each.memory_gib); });
    return all;
  }

 private:
  Found search(const plan::LayoutChoice& mesh, EstimateMemo& memo) const {
    Found found;
    const auto run = estimate(mesh, memo, found);
    if (!run) return found;
    const int64_t most = largest_micro(mesh, run->global_batch);
    for (const plan::LayoutChoice& layout : plan::variants(space_, mesh)) add_best_batch(layout, most, memo, found);
    return found;
  }

  std::optional<plan::RunEstimate> estimate(const plan::LayoutChoice& layout, EstimateMemo& memo, Found& found) const {
    config::CommandLine line = line_;
    for (const auto& [key, value] : layout.settings()) line.settings.push_back({key, value, cat("--set ", key)});
    try {
      return estimate_of(
          application_, line,
          {.world = devices_, .flops_per_second = machine_.flops_per_second, .node_devices = node_devices_, .memo = &memo});
    } catch (const ConfigError& error) {
      const std::string text = error.what();
      ++found.refused[text.substr(0, text.find(':'))];
      if (!found.first_refusal) found.first_refusal = error;
      return {};
    }
  }

  // The last value on the command line.
  std::optional<std::string> given(const std::string& key) const {
    std::optional<std::string> value;
    for (const config::Setting& setting : line_.settings) {
      if (setting.key == key || setting.key.ends_with(cat(".", key))) value = setting.text;
    }
    return value;
  }

  // `auto` is for the run to choose, so it is chosen here.
  std::optional<int64_t> given_micro() const {
    const auto text = given("micro_batch_size");
    if (!text || *text == "auto") return {};
    return std::strtoll(text->c_str(), nullptr, 10);
  }

  // Without a pipeline fewer and larger forward passes are never slower; in one, many small ones leave less idle time.
  void add_best_batch(plan::LayoutChoice layout, int64_t most, EstimateMemo& memo, Found& found) const {
    bool has_fitting = false;
    const bool is_given = given_micro().has_value();
    for (int64_t micro = most; micro >= 1; micro = is_given ? 0 : micro / 2) {
      layout.micro_batch = micro;
      const auto run = estimate(layout, memo, found);
      if (!run) continue;
      const double gib = run->memory_bytes() / plan::kBytesPerGib;
      if (gib > memory_gib_) {
        if ((micro == 1 || is_given) && !has_fitting) {
          found.smallest_gib = std::min(found.smallest_gib, gib);
          ++found.too_large;
        }
        continue;
      }
      has_fitting = true;
      found.fitting.push_back({layout, plan::step_time(*run, machine_), gib, run->global_batch});
      if (layout.pp == 1) return;
    }
  }

  // The samples of a replica, down to a power of two; the user's number.
  int64_t largest_micro(const plan::LayoutChoice& mesh, int64_t global_batch) const {
    if (const auto micro = given_micro()) return *micro;
    int64_t micro = 1;
    while (2 * micro * mesh.dp <= global_batch) micro *= 2;
    return micro;
  }

  const Application& application_;
  const config::CommandLine& line_;
  int64_t devices_, node_devices_;
  plan::Machine machine_;
  double memory_gib_;
  plan::LayoutSpace space_;
};

// The fastest of each mesh, or all: in their order.
std::vector<Ranked> listed(const std::vector<Ranked>& fitting, bool all, int64_t top) {
  std::vector<Ranked> rows;
  for (const Ranked& each : fitting) {
    const bool is_other = std::ranges::none_of(rows, [&](const Ranked& row) { return row.layout.has_same_mesh(each.layout); });
    if (static_cast<int64_t>(rows.size()) < top && (all || is_other)) rows.push_back(each);
  }
  return rows;
}

std::string layout_table(const std::vector<Ranked>& rows) {
  observe::Table table({{"layout", observe::Align::Left},
                        {"step [s]", observe::Align::Right},
                        {"samples/s", observe::Align::Right},
                        {"compute", observe::Align::Right},
                        {"idle", observe::Align::Right},
                        {"model", observe::Align::Right},
                        {"gradients", observe::Align::Right},
                        {"stages", observe::Align::Right},
                        {"memory [GiB]", observe::Align::Right}});
  const auto number = [](double value) { return rounded(value, 3); };
  for (const Ranked& each : rows) {
    table.add_row({each.layout.text(), number(each.time.total()), number(each.samples_per_second()), number(each.time.compute),
                   number(each.time.idle), number(each.time.model), number(each.time.gradients), number(each.time.stages),
                   number(each.memory_gib)});
  }
  return table.text();
}

std::string layout_json(const std::vector<Ranked>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Ranked& each : rows) {
    nlohmann::ordered_json keys = nlohmann::ordered_json::object();
    for (const auto& [key, value] : each.layout.settings()) keys[key] = value;
    json.push_back({{"layout", each.layout.text()},
                    {"keys", keys},
                    {"step_s", each.time.total()},
                    {"samples_per_s", each.samples_per_second()},
                    {"compute_s", each.time.compute},
                    {"idle_s", each.time.idle},
                    {"model_s", each.time.model},
                    {"gradients_s", each.time.gradients},
                    {"stages_s", each.time.stages},
                    {"memory_gib", each.memory_gib}});
  }
  return json.dump(2) + "\n";
}

void print(Application& application, const Found& found, const std::vector<Ranked>& rows) {
  int64_t refused = 0;
  for (const auto& [reason, count] : found.refused) refused += count;
  application.out << found.fitting.size() << " layouts fit, " << found.too_large << " need more memory, " << refused
                  << " are refused\n\n"
                  << layout_table(rows) << "\nFlags of the first: " << rows.front().layout.flags() << "\n";
}

[[noreturn]] void refuse_all(const Found& found, const config::CommandLine& line) {
  if (found.too_large > 0) {
    throw ConfigError("plan",
                      cat("no layout fits into the memory of a device: memory_gib=", text_flag(line, "memory_gib"),
                          ", the smallest needs ", rounded(found.smallest_gib, 3), " GiB, layouts=", found.too_large),
                      "Take more devices, or --offload");
  }
  if (found.refused.size() == 1) throw ConfigError(*found.first_refusal);  // of the run, whatever its layout
  std::string reasons;
  for (const auto& [reason, count] : found.refused) reasons += cat(reasons.empty() ? "" : "; ", reason, " (", count, ")");
  throw ConfigError("plan", cat("no layout divides this run: ", reasons),
                    "Take a number of devices that shares factors with the batch and the model");
}

}  // namespace

int verb_plan_search(Application& application, int argc, char** argv) {
  const config::CommandLine line = config::parse(argc, argv, kSearchFlags);
  if (line.help != config::Help::Off) {
    print_help(application, {.program = argv[0], .extra = kSearchFlags, .common = config::Common::Steps}, line.help);
    return 0;
  }
  const int64_t top = whole_flag(line, "top", 10, 1, 1'000'000);
  const std::string json = text_flag(line, "json");
  if (!json.empty() && json != "-") check_output("plan", "--json", json);
  const Found found = Search(application, line).run();
  if (found.fitting.empty()) refuse_all(found, line);
  const std::vector<Ranked> rows = listed(found.fitting, has_flag(line, "all"), top);
  if (json == "-") {
    application.out << layout_json(rows);
  } else {
    print(application, found, rows);
  }
  if (!json.empty() && json != "-") write_file_atomically(json, layout_json(rows));
  return 0;
}

}  // namespace welkin::apps
