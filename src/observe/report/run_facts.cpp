// SPDX-License-Identifier: Apache-2.0
#include "observe/report/run_facts.h"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "observe/report/shallow_json.h"

namespace welkin::observe {
namespace {

constexpr uint64_t kLargestFactFile = uint64_t{1} << 28;
constexpr size_t kLongestValue = 4096;

// Empty if the file is absent or cannot be read.
std::string fact_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  try {
    return read_file(path, kLargestFactFile);
  } catch (const DataError&) {
    return {};
  }
}

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

bool is_key(std::string_view word) {
  return !word.empty() && word.size() < 80 && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == word.npos;
}

std::string limited(std::string_view text) { return std::string(text.substr(0, kLongestValue)); }

// config.yaml as config::yaml() prints it: "    key: value" below the names of groups.
std::map<std::string, std::string> saved_configuration(std::string_view text) {
  std::map<std::string, std::string> configuration;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::string_view words = without_blanks(line);
    const size_t colon = words.find(": ");
    if (colon == std::string_view::npos || !is_key(words.substr(0, colon))) continue;
    configuration[std::string(words.substr(0, colon))] = limited(without_blanks(words.substr(colon + 2)));
  }
  return configuration;
}

// The text behind " - INFO - " of each line of the log.
std::vector<std::string_view> log_messages(std::string_view log) {
  constexpr std::string_view kLevel = " - INFO - ";
  std::vector<std::string_view> messages;
  while (!log.empty()) {
    const size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == log.npos ? log.size() : end + 1);
    if (const size_t at = line.substr(0, 200).find(kLevel); at != line.npos) messages.push_back(line.substr(at + kLevel.size()));
  }
  return messages;
}

// Reads "key value" from the lines behind "Configuration name". A resumed run prints them again with its own count.
std::map<std::string, std::string> printed_configuration(const std::vector<std::string_view>& messages) {
  std::map<std::string, std::string> configuration;
  bool is_inside = false;
  for (const std::string_view message : messages) {
    if (message.starts_with("Configuration name")) {
      is_inside = true;
      continue;
    }
    const size_t blank = message.find(' ');
    is_inside = is_inside && blank != message.npos && is_key(message.substr(0, blank));
    if (is_inside) configuration[std::string(message.substr(0, blank))] = limited(without_blanks(message.substr(blank + 1)));
  }
  return configuration;
}

// Reads the log lines that describe the surroundings of a run, by their beginnings; the last of each kind counts.
void add_log_lines(const std::vector<std::string_view>& messages, RunFacts& facts) {
  constexpr std::array<std::string_view, 5> kBeginnings{"Model ", "Ranks: ", "Kernels: ", "Matmuls in ", "Reading: "};
  for (const std::string_view beginning : kBeginnings) {
    std::string_view last;
    for (const std::string_view message : messages) {
      if (message.starts_with(beginning) && message.find(": ") != message.npos) last = message;
    }
    if (last.empty()) continue;
    const size_t colon = last.find(": ");
    facts.environment.emplace_back(limited(last.substr(0, colon)), limited(last.substr(colon + 2)));
  }
}

// Printing recurses into nested values, and the file may come from anybody.
std::string shown_json(const nlohmann::ordered_json& value) {
  if (value.is_string()) return limited(value.get<std::string>());
  for (const auto& inner : value) {
    if (value.is_structured() && inner.is_structured()) return "...";
  }
  return limited(value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string text_of(const nlohmann::ordered_json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? std::string() : limited(found->get<std::string>());
}

int64_t whole_of(const nlohmann::ordered_json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number_integer() ? 0 : found->get<int64_t>();
}

void add_status(std::string_view text, RunFacts& facts) {
  constexpr std::array<const char*, 9> kShown{"state",           "host",  "ranks",         "step", "total_steps",
                                              "last_checkpoint", "error", "samples_per_s", "time"};
  const nlohmann::ordered_json status = shallow_json(text);
  if (!status.is_object()) return;
  facts.state = text_of(status, "state");
  facts.host = text_of(status, "host");
  facts.process = whole_of(status, "process");
  for (const char* name : kShown) {
    const auto found = status.find(name);
    if (found != status.end() && !found->is_null()) facts.environment.emplace_back(name, shown_json(*found));
  }
}

std::optional<RunEvent> event_of(std::string_view line) {
  const nlohmann::ordered_json json = shallow_json(line);
  if (!json.is_object()) return std::nullopt;
  RunEvent event{.wall_time = seconds_of_utc(text_of(json, "time")),
                 .name = text_of(json, "event"),
                 .step = whole_of(json, "step"),
                 .rank = whole_of(json, "rank")};
  std::vector<std::string> fields;
  for (const auto& [name, value] : json.items()) {
    if (name != "time" && name != "event" && name != "step" && name != "rank")
      fields.push_back(cat(name, "=", shown_json(value)));
  }
  event.text = limited(join(fields, ", "));
  return event.name.empty() ? std::nullopt : std::optional(event);
}

// Keeps the first events and the last ones, half of the limit each.
void add_events(std::string_view text, RunFacts& facts) {
  constexpr size_t kMostEvents = 400;
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == text.npos) break;  // incomplete line
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  facts.num_events = static_cast<int64_t>(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i >= kMostEvents / 2 && i + kMostEvents / 2 < lines.size()) continue;
    if (auto event = event_of(lines[i])) facts.events.push_back(std::move(*event));
  }
}

}  // namespace

double seconds_of_utc(const std::string& text) {
  std::tm utc{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (rest == nullptr) return 0;
  const double fraction = *rest == '.' ? std::strtod(rest, nullptr) : 0;
  return static_cast<double>(::timegm(&utc)) + fraction;
}

RunFacts run_facts_of(const RunTexts& texts) {
  RunFacts facts{.environment = {}};
  const auto messages = log_messages(texts.log);
  facts.configuration = saved_configuration(texts.configuration);
  if (facts.configuration.empty()) facts.configuration = printed_configuration(messages);
  add_status(texts.status, facts);
  add_log_lines(messages, facts);
  add_events(texts.events, facts);
  return facts;
}

RunFacts read_run_facts(const std::filesystem::path& run_folder) {
  const std::string log = fact_file(run_folder / "out.log"), configuration = fact_file(run_folder / "config.yaml");
  const std::string status = fact_file(run_folder / "status.json"), events = fact_file(run_folder / "events.jsonl");
  return run_facts_of({.log = log, .configuration = configuration, .status = status, .events = events});
}

}  // namespace welkin::observe
