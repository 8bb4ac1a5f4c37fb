// SPDX-License-Identifier: Apache-2.0
#include "observe/report/wandb_run.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "core/archive/crc32.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"
#include "observe/events/protobuf.h"
#include "observe/log/event_log.h"

namespace welkin::observe {
namespace {

// LevelDB's log (doc/log_format.md) as wandb writes it: with its own header, and a CRC-32 instead of a masked CRC-32C.
class LevelDbLog {
 public:
  LevelDbLog() {
    bytes_ = ":W&B";
    append(0xBEE1, 2);  // magic number
    append(0, 1);       // version
  }

  void add(std::string_view record) {
    bool is_first = true;
    for (bool is_last = false; !is_last; is_first = false) {
      size_t room = kBlock - bytes_.size() % kBlock;
      if (room < kHeader) {
        bytes_.append(room, '\0');
        room = kBlock;
      }
      const std::string_view part = record.substr(0, room - kHeader);
      record.remove_prefix(part.size());
      is_last = record.empty();
      add_part(part, is_first ? (is_last ? kFull : kFirst) : (is_last ? kLast : kMiddle));
    }
  }

  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr size_t kBlock = 32768, kHeader = 7;
  static constexpr char kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4;

  void add_part(std::string_view part, char kind) {
    const uint32_t of_kind = archive::crc32(std::as_bytes(std::span(&kind, 1)));
    append(archive::crc32(std::as_bytes(std::span(part)), of_kind), 4);
    append(part.size(), 2);
    bytes_.push_back(kind);
    bytes_.append(part);
  }
  void append(uint64_t value, int num_bytes) {
    for (int i = 0; i < num_bytes; ++i, value >>= 8) bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

// In the form that Python's json reads.
std::string number_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value));
  return {text.data(), end.ptr};
}

std::string time_json(double seconds) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), seconds).ptr};
}

// Numbers, switches and lists of the configuration keep their JSON type; everything else is text.
std::string value_json(const std::string& value) {
  const auto parsed = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  const bool is_plain = parsed.is_number() || parsed.is_boolean() || parsed.is_null();
  return is_plain ? value : nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A HistoryItem, SummaryItem or ConfigItem, which are encoded alike.
std::string item(std::string_view name, std::string_view json, bool is_nested) {
  constexpr uint32_t kKey = 1, kNestedKey = 2, kValueJson = 16;
  return ProtobufMessage().bytes(is_nested ? kNestedKey : kKey, name).bytes(kValueJson, json).encoded();
}

// Values logged in one step.
struct LoggedStep {
  double wall_time = 0;
  std::map<std::string, double> values;
};

std::map<int64_t, LoggedStep> steps_of(const RunHistory& run) {
  std::map<int64_t, LoggedStep> steps;
  for (const auto& [tag, points] : run.scalars.by_tag) {
    for (const ScalarPoint& point : points) {
      LoggedStep& step = steps[point.step];
      step.wall_time = std::max(step.wall_time, point.wall_time);
      step.values[tag] = point.value;
    }
  }
  return steps;
}

class RunRecords {
 public:
  RunRecords(const RunHistory& run, std::string identity, std::string project)
      : run_(run), identity_(std::move(identity)), project_(std::move(project)) {}

  std::string bytes() {
    constexpr uint32_t kHistory = 2, kSummary = 3, kRun = 17, kExit = 18, kHeader = 21;
    add(kHeader, ProtobufMessage().bytes(1, ProtobufMessage().bytes(1, "welkin").bytes(2, "0.40.0").encoded()).encoded());
    add(kRun, run_record());
    std::map<std::string, double> newest;
    double last = run_.scalars.first_wall_time;
    for (const auto& [number, step] : steps_of(run_)) {
      add(kHistory, history_record(number, step));
      for (const auto& [tag, value] : step.values) newest[tag] = value;
      last = std::max(last, step.wall_time);
    }
    ProtobufMessage summary;
    for (const auto& [tag, value] : newest) summary.bytes(1, item(tag, number_json(value), /*is_nested=*/true));
    add(kSummary, summary.encoded());
    const std::string& state = run_.facts.state;
    if (state != "running" && state != "starting") {
      const auto runtime = static_cast<int64_t>(last - run_.scalars.first_wall_time);
      add(kExit, ProtobufMessage().integer(1, state == "failed" ? 1 : 0).integer(2, runtime).encoded());
    }
    return log_.bytes();
  }

 private:
  void add(uint32_t field, const std::string& record) {
    constexpr uint32_t kNumber = 1;
    log_.add(ProtobufMessage().integer(kNumber, ++number_).bytes(field, record).encoded());
  }

  std::string run_record() const {
    constexpr uint32_t kRunId = 1, kProject = 3, kConfig = 4, kDisplayName = 8, kNotes = 9, kStartTime = 17, kUpdate = 1;
    ProtobufMessage config;
    for (const auto& [key, value] : run_.facts.configuration)
      config.bytes(kUpdate, item(key, value_json(value), /*is_nested=*/false));
    const double start = run_.scalars.first_wall_time;
    const double whole = std::floor(start);
    const std::string time = ProtobufMessage()
                                 .integer(1, static_cast<int64_t>(whole))
                                 .integer(2, std::llround((start - whole) * 1e6) * 1000)
                                 .encoded();
    return ProtobufMessage()
        .bytes(kRunId, identity_)
        .bytes(kProject, project_)
        .bytes(kConfig, config.encoded())
        .bytes(kDisplayName, run_.label)
        .bytes(kNotes, run_.folder.string())
        .bytes(kStartTime, time)
        .encoded();
  }

  std::string history_record(int64_t number, const LoggedStep& step) const {
    constexpr uint32_t kItem = 1, kStep = 2;
    ProtobufMessage record;
    for (const auto& [tag, value] : step.values) record.bytes(kItem, item(tag, number_json(value), /*is_nested=*/true));
    record.bytes(kItem, item("_timestamp", time_json(step.wall_time), true));
    record.bytes(kItem, item("_runtime", time_json(step.wall_time - run_.scalars.first_wall_time), true));
    record.bytes(kItem, item("_step", cat(number), true));
    return record.bytes(kStep, ProtobufMessage().integer(1, number).encoded()).encoded();
  }

  const RunHistory& run_;
  std::string identity_, project_;
  LevelDbLog log_;
  int64_t number_ = 0;
};

// Eight letters and digits of wandb's run id.
std::string wandb_identity(const RunHistory& run) {
  return hex_digits(fnv1a64(cat(run.folder.string(), " ", std::llround(run.scalars.first_wall_time * 1000)))).substr(0, 8);
}

// "20260131_120000", in UTC.
std::string compact_time(double seconds) {
  std::string text = utc_text(std::llround(std::max(0.0, seconds) * 1000));
  std::erase_if(text, [](char letter) { return letter == '-' || letter == ':'; });
  std::ranges::replace(text, 'T', '_');
  return text.substr(0, 15);
}

}  // namespace

void write_wandb_runs(const std::filesystem::path& folder, const std::string& project, const std::vector<RunHistory>& runs) {
  for (const RunHistory& run : runs) {
    const std::string identity = wandb_identity(run);
    const auto place = folder / cat("offline-run-", compact_time(run.scalars.first_wall_time), "-", identity);
    make_folders(place / "files");
    write_file_atomically(place / cat("run-", identity, ".wandb"), RunRecords(run, identity, project).bytes());
  }
}

}  // namespace welkin::observe
