// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/roll_call.h"

#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kVerdict = "roll/verdict";
constexpr const char* kAllThere = "all there";
constexpr auto kVerdictMargin = std::chrono::milliseconds(5000);

std::string place_key(const char* what, int64_t rank) { return cat("roll/", what, "/", rank); }

// The first line in which two texts differ, both shown.
std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream one(a), other(b);
  std::string line_a, line_b;
  while (true) {
    const bool more_a = static_cast<bool>(std::getline(one, line_a));
    const bool more_b = static_cast<bool>(std::getline(other, line_b));
    if (!more_a) line_a = "(nothing)";
    if (!more_b) line_b = "(nothing)";
    if (line_a != line_b || (!more_a && !more_b)) break;
  }
  const auto trimmed = [](const std::string& line) { return line.substr(std::min(line.find_first_not_of(' '), line.size())); };
  return cat("'", trimmed(line_a), "' and '", trimmed(line_b), "'");
}

std::string ranks_text(const std::vector<int64_t>& ranks) {
  constexpr size_t kShown = 16;
  const std::vector<int64_t> first(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, ranks.size())));
  return cat("[", join(first, ", "), ranks.size() > kShown ? cat(", ... ", ranks.size(), " in all") : "", "]");
}

// What is wrong, with the letter of its kind in front: c(onfiguration) or m(issing). Nothing when all is well.
std::optional<std::string> judge(NoticeBoard& board, const RollCall& self, std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  std::vector<int64_t> missing;
  for (int64_t rank = 1; rank < self.world_size; ++rank) missing.push_back(rank);
  auto pause = std::chrono::milliseconds(2);
  while (true) {
    std::vector<int64_t> still;
    for (const int64_t rank : missing) {
      const auto program = board.read(place_key("program", rank));
      if (!program) {
        still.push_back(rank);
        continue;
      }
      const std::string configuration = board.read(place_key("configuration", rank)).value_or("");
      const std::string where = cat("rank ", rank, " (", board.read(place_key("host", rank)).value_or("unknown"), ")");
      if (*program != self.program)
        return cat("c", where, " runs another program than rank 0: hashes=", self.program, " and ", *program);
      if (configuration != self.configuration) {
        return cat("c", where, " has another configuration than rank 0: ", first_difference(self.configuration, configuration));
      }
    }
    missing = std::move(still);
    if (missing.empty()) return {};
    if (Clock::now() > until) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(100));
  }
  return cat("mranks did not arrive: missing=", ranks_text(missing), ", world size=", self.world_size,
             ", waited_s=", static_cast<double>(patience.count()) / 1000);
}

// The store goes with rank 0, so it stays until those that are there have read why.
void wait_for_readers(NoticeBoard& board, const RollCall& self) {
  const auto until = Clock::now() + std::chrono::milliseconds(3000);
  for (int64_t rank = 1; rank < self.world_size; ++rank) {
    if (!board.read(place_key("program", rank))) continue;
    while (!board.read(place_key("read", rank)) && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

[[noreturn]] void refuse(const std::string& verdict) {
  const std::string sentence = verdict.substr(1);
  if (verdict.front() == 'c') {
    throw ConfigError("parallel", sentence, "Start all ranks with the same program and arguments");
  }
  throw CommError(
      "parallel", sentence,
      "Look at the output of these ranks; slow starts need a longer --comm_timeout_s, and fewer processes a smaller WORLD_SIZE");
}

}  // namespace

void call_roll(NoticeBoard& board, const RollCall& self, std::chrono::milliseconds patience) {
  if (self.rank == 0) {
    const auto verdict = judge(board, self, patience);
    board.post(kVerdict, verdict.value_or(kAllThere));
    if (!verdict) return;
    wait_for_readers(board, self);
    refuse(*verdict);
  }
  board.post(place_key("host", self.rank), self.host);
  board.post(place_key("configuration", self.rank), self.configuration);
  board.post(place_key("program", self.rank), self.program);  // last: its presence says that the others are there
  const auto until = Clock::now() + patience + kVerdictMargin;
  while (Clock::now() < until) {
    if (const auto verdict = board.read(kVerdict)) {
      if (*verdict == kAllThere) return;
      board.post(place_key("read", self.rank), "1");
      refuse(*verdict);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw CommError("parallel",
                  cat("rank 0 gives no verdict on who is there: waited_s=", static_cast<double>(patience.count()) / 1000),
                  "Look at the output of rank 0");
}

}  // namespace welkin::parallel
