// SPDX-License-Identifier: Apache-2.0
#include "train/inject/faults.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::train {
namespace {

constexpr std::string_view kPlace = "step|rank|phase|after";

struct KindRow {
  FaultKind kind;
  std::string_view name;
  std::string_view values;  // values that the kind takes
  std::string_view phases;  // of kFaultPhases; the first is the default
};

// Rows in the order of FaultKind.
constexpr std::array<KindRow, 13> kKinds{{
    {FaultKind::Kill, "kill", kPlace, kFaultPhases},
    {FaultKind::Stop, "stop", kPlace, kFaultPhases},
    {FaultKind::Slow, "slow", "step|rank|phase|after|seconds|steps", kFaultPhases},
    {FaultKind::Exception, "exception", "step|rank", "step"},
    {FaultKind::NanGradient, "nan_gradient", "step|rank|steps", "step"},
    {FaultKind::WrongGradient, "wrong_gradient", "step|rank", "step"},
    {FaultKind::Spike, "spike", "step|rank|steps|factor", "step"},
    {FaultKind::FlipWeight, "flip_weight", "step|rank|parameter|bit", "step"},
    {FaultKind::TruncateCheckpoint, "truncate_checkpoint", "step|rank", "step"},
    {FaultKind::FlipCheckpoint, "flip_checkpoint", "step|rank", "step"},
    {FaultKind::WriteError, "write_error", "step|rank|phase|after|error", "write|create|sync|rename"},
    {FaultKind::DropConnection, "drop_connection", kPlace, kFaultPhases},
    {FaultKind::WrongTime, "wrong_time", "step|rank|seconds", "step"},
}};

std::vector<std::string> pieces_of(const std::string& text, char separator) {
  std::vector<std::string> pieces;
  std::istringstream in(text);
  for (std::string piece; std::getline(in, piece, separator);) pieces.push_back(piece);
  return pieces;
}

bool is_one_of(std::string_view name, std::string_view names) {
  const std::vector<std::string> all = pieces_of(std::string(names), '|');
  return !name.empty() && std::ranges::find(all, name) != all.end();
}

std::string listed(std::string_view names) { return join(pieces_of(std::string(names), '|'), ", "); }

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? std::string() : text.substr(begin, end - begin + 1);
}

[[noreturn]] void refuse(const std::string& fault, const std::string& what, const std::string& remedy) {
  throw ConfigError("inject", cat(what, ": fault=", fault), remedy);
}

template <typename Number>
Number number_of(const std::string& fault, const std::string& name, const std::string& value, double least, double most) {
  Number number{};
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_read = problem == std::errc() && end == value.data() + value.size();
  if (!is_read || !(static_cast<double>(number) >= least && static_cast<double>(number) <= most)) {
    refuse(fault, cat(name, " is no number from ", least, " to ", most),
           cat("Write for instance ", name, "=", std::max(least, 1.0)));
  }
  return number;
}

int errno_named(const std::string& fault, const std::string& value) {
  if (value == "EIO") return EIO;
  if (value == "ENOSPC") return ENOSPC;
  if (value == "EROFS") return EROFS;
  refuse(fault, "this error of a disk is not known", "Take EIO, ENOSPC or EROFS");
}

void set(Fault& fault, const KindRow& row, const std::string& name, const std::string& value, int64_t world_size) {
  constexpr double kMost = 1e15;
  if (!is_one_of(name, row.values)) {
    refuse(fault.text, cat(row.name, " has no value ", name), cat("It takes ", listed(row.values)));
  }
  const auto whole = [&](double least, double most) { return number_of<int64_t>(fault.text, name, value, least, most); };
  const auto real = [&](double least, double most) { return number_of<double>(fault.text, name, value, least, most); };
  if (name == "step") fault.step = whole(1, kMost);
  if (name == "steps") fault.steps = whole(1, kMost);
  if (name == "after") fault.after = whole(0, kMost);
  if (name == "bit") fault.bit = whole(0, 31);
  if (name == "seconds") fault.seconds = real(row.kind == FaultKind::WrongTime ? -1e9 : 0, 1e9);
  if (name == "factor") fault.factor = real(0, 1e30);
  if (name == "error") fault.error = errno_named(fault.text, value);
  if (name == "parameter") fault.parameter = value;
  if (name == "rank") {
    fault.rank = value == "all" ? std::nullopt : std::optional<int64_t>(whole(0, static_cast<double>(world_size - 1)));
  }
  if (name == "phase") {
    if (!is_one_of(value, row.phases))
      refuse(fault.text, cat("there is no such phase: ", value), cat("Take one of ", listed(row.phases)));
    fault.phase = value;
  }
}

Fault parse_fault(const std::string& text, int64_t world_size) {
  const size_t colon = text.find(':');
  const std::string name = trimmed(text.substr(0, colon));
  const auto* row = std::ranges::find(kKinds, name, &KindRow::name);
  if (row == kKinds.end()) {
    std::vector<std::string_view> names;
    for (const KindRow& known : kKinds) names.push_back(known.name);
    refuse(text, "there is no such fault, and no such file", cat("Take one of ", join(names, ", ")));
  }
  Fault fault{.kind = row->kind, .rank = 0, .error = EIO, .parameter = {}, .text = text};
  fault.phase = pieces_of(std::string(row->phases), '|').front();
  if (colon == std::string::npos) return fault;
  std::vector<std::string> names;
  for (const std::string& piece : pieces_of(text.substr(colon + 1), ',')) {
    const size_t equals = piece.find('=');
    if (equals == std::string::npos)
      refuse(text, cat("a value without a name: ", piece), cat("Write for instance ", row->name, ":step=5"));
    names.push_back(trimmed(piece.substr(0, equals)));
    if (std::ranges::count(names, names.back()) > 1) {
      refuse(text, cat(names.back(), " is there twice"), "Write each value once; faults are separated by ;");
    }
    set(fault, *row, names.back(), trimmed(piece.substr(equals + 1)), world_size);
  }
  return fault;
}

}  // namespace

bool is_write_phase(std::string_view phase) { return is_one_of(phase, "create|write|sync|rename"); }

std::string_view name_of(FaultKind kind) { return kKinds.at(static_cast<size_t>(kind)).name; }

std::vector<Fault> parse_faults(const std::string& text_or_file, int64_t world_size) {
  constexpr uint64_t kLimitBytes = 1 << 20;
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(text_or_file, ignored);
  std::vector<Fault> faults;
  for (const std::string& line : pieces_of(is_file ? read_file(text_or_file, kLimitBytes) : text_or_file, '\n')) {
    for (const std::string& piece : pieces_of(line.substr(0, line.find('#')), ';')) {
      if (const std::string text = trimmed(piece); !text.empty()) faults.push_back(parse_fault(text, world_size));
    }
  }
  if (faults.empty())
    throw ConfigError("inject", cat("it names no fault: inject=", text_or_file), "Write for instance kill:step=5");
  return faults;
}

}  // namespace welkin::train
