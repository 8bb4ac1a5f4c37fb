// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/rendezvous.h"

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
constexpr const char* kSize = "roll/size";      // rank 0's number of ranks, and a line that tells it in words
constexpr const char* kMisfit = "roll/misfit";  // the sentence of a rank whose numbers contradict those of another
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

std::string size_text(const RendezvousInfo& info) {
  return cat("one of ", info.world_size, " ranks (on its node ", info.local_size, ", nodes ", info.num_nodes, ")");
}

// What contradicts: another number of ranks than rank 0 has, or another process with this rank. Both come from nodes that were
// started with other numbers. Such a rank may be one that rank 0 does not wait for, while that waits for ranks which never come.
std::optional<std::string> misfit(KeyValueStore& kv_store, const RendezvousInfo& self) {
  const std::string where = cat("rank ", self.rank, " (", self.host, ")");
  const auto first = kv_store.read(kSize);
  if (first && first->substr(0, first->find('\n')) != cat(self.world_size)) {
    return cat("the ranks do not agree on their number: ", where, " is ", size_text(self), ", rank 0 is ",
               first->substr(first->find('\n') + 1));
  }
  const auto same = kv_store.read(place_key("who", self.rank));
  if (!same || *same == self.host) return {};
  return cat("two processes have the same rank: rank ", self.rank, " is ", *same, " and ", self.host);
}

// What is wrong, with the letter of its kind in front: c(onfiguration), n(umbers) or m(issing). Nothing when all is well.
std::optional<std::string> judge(KeyValueStore& kv_store, const RendezvousInfo& self, std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  std::vector<int64_t> missing;
  for (int64_t rank = 1; rank < self.world_size; ++rank) missing.push_back(rank);
  auto pause = std::chrono::milliseconds(2);
  while (true) {
    if (const auto found = kv_store.read(kMisfit)) return cat("n", *found);
    std::vector<int64_t> still;
    for (const int64_t rank : missing) {
      const auto program = kv_store.read(place_key("program", rank));
      if (!program) {
        still.push_back(rank);
        continue;
      }
      const std::string configuration = kv_store.read(place_key("configuration", rank)).value_or("");
      const std::string where = cat("rank ", rank, " (", kv_store.read(place_key("host", rank)).value_or("unknown"), ")");
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
             ", waited_s=", static_cast<double>(timeout.count()) / 1000);
}

// The store goes with rank 0, so it stays until those that are there have read why.
void wait_for_readers(KeyValueStore& kv_store, const RendezvousInfo& self) {
  const auto until = Clock::now() + std::chrono::milliseconds(3000);
  for (int64_t rank = 1; rank < self.world_size; ++rank) {
    if (!kv_store.read(place_key("program", rank))) continue;
    while (!kv_store.read(place_key("read", rank)) && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

[[noreturn]] void refuse(const std::string& verdict) {
  const std::string sentence = verdict.substr(1);
  if (verdict.front() == 'c') {
    throw ConfigError("parallel", sentence, "Start all ranks with the same program and arguments");
  }
  if (verdict.front() == 'n') {
    throw ConfigError(
        "parallel", sentence,
        "Give welkin launch the same -n and --nnodes on every node and each another --node_rank; other launchers, the "
        "same WORLD_SIZE and each process another RANK");
  }
  throw CommError(
      "parallel", sentence,
      "Look at the output of these ranks; slow starts need a longer --comm_timeout_s, and fewer processes a smaller WORLD_SIZE");
}

}  // namespace

void rendezvous(KeyValueStore& kv_store, const RendezvousInfo& self, std::chrono::milliseconds timeout) {
  if (self.rank == 0) {
    kv_store.set(kSize, cat(self.world_size, "\n", size_text(self)));
    const auto verdict = judge(kv_store, self, timeout);
    kv_store.set(kVerdict, verdict.value_or(kAllThere));
    if (!verdict) return;
    wait_for_readers(kv_store, self);
    refuse(*verdict);
  }
  kv_store.set_if_absent(place_key("who", self.rank), self.host);
  kv_store.set(place_key("host", self.rank), self.host);
  kv_store.set(place_key("configuration", self.rank), self.configuration);
  kv_store.set(place_key("program", self.rank), self.program);  // last: its presence says that the others are there
  const auto until = Clock::now() + timeout + kVerdictMargin;
  while (Clock::now() < until) {
    if (const auto verdict = kv_store.read(kVerdict)) {
      if (*verdict == kAllThere) return;
      kv_store.set(place_key("read", self.rank), "1");
      refuse(*verdict);
    }
    if (const auto found = misfit(kv_store, self)) {
      kv_store.set_if_absent(kMisfit, *found);
      kv_store.set(place_key("read", self.rank), "1");
      refuse(cat("n", *found));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw CommError("parallel",
                  cat("no answer from rank 0 at the rendezvous: waited_s=", static_cast<double>(timeout.count()) / 1000),
                  "Look at the output of rank 0");
}

}  // namespace welkin::parallel
