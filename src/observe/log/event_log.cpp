// SPDX-License-Identifier: Apache-2.0
#include "observe/log/event_log.h"

#include <fcntl.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/fault/wall_clock.h"
#include "core/text.h"

namespace welkin::observe {
namespace {

nlohmann::ordered_json json_value(const EventValue& value) {
  if (const auto* number = std::get_if<double>(&value); number != nullptr && !std::isfinite(*number)) {
    return std::isnan(*number) ? "nan" : *number > 0 ? "inf" : "-inf";
  }
  return std::visit([](const auto& held) { return nlohmann::ordered_json(held); }, value);
}

int64_t milliseconds_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(wall_now().time_since_epoch()).count();
}

}  // namespace

std::string utc_text(int64_t milliseconds) {
  const std::time_t seconds = milliseconds / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> date{};
  const size_t length = std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>(milliseconds % 1000));
  return cat(std::string_view(date.data(), length), fraction.data());
}

std::string event_line(int64_t milliseconds, std::string_view event, int64_t step, int64_t rank, const EventFields& fields) {
  nlohmann::ordered_json json = {{"time", utc_text(milliseconds)}, {"event", event}, {"step", step}, {"rank", rank}};
  for (const auto& [name, value] : fields) json[name] = json_value(value);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

bool EventLog::add(std::string_view event, int64_t step, const EventFields& fields) {
  const std::lock_guard lock(mutex_);
  ++counts_[std::string(event)];
  try {
    if (!file_) file_ = open_file(path_, O_WRONLY | O_CREAT | O_APPEND);
    write_fully(file_, path_, event_line(milliseconds_now(), event, step, rank_, fields));
    return true;
  } catch (const DataError&) {
    return false;
  }
}

std::map<std::string, int64_t> EventLog::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace welkin::observe
