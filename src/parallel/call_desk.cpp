// SPDX-License-Identifier: Apache-2.0
#include "parallel/call_desk.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

constexpr std::chrono::milliseconds kPollInterval{20};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The first line of what the back end says: its stack traces help no user.
std::string first_line(const std::string& text) { return text.substr(0, std::min(text.find('\n'), size_t{200})); }

}  // namespace

CallDesk::CallDesk(std::shared_ptr<const CallServices> services, std::string group_text, std::vector<int64_t> ranks)
    : services_(std::move(services)), group_text_(std::move(group_text)), ranks_(std::move(ranks)) {}

int64_t CallDesk::begin(const char* name, std::string shape) {
  return services_->recorder->start(
      {.sequence = ++sequence_, .name = name, .shape = std::move(shape), .group = group_text_, .started = {}});
}

std::string CallDesk::notice_key(const char* key, int64_t rank) const { return cat(key, "/", group_text_, "/", rank); }

// The notices of `ranks` under a key, after at most the grace time. Other ranks than the first leave sooner: a member whose own
// partners all live learns of a failure when they end, and is to be heard before the first one judges.
CallDesk::Notices CallDesk::gather_notices(const char* key, const std::vector<int64_t>& ranks) const {
  const auto patience = services_->rank == 0 ? services_->grace : services_->grace / 6;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    Notices notices;
    for (const int64_t rank : ranks) notices.push_back(services_->board->read(notice_key(key, rank)));
    const bool complete = std::all_of(notices.begin(), notices.end(), [](const auto& notice) { return notice.has_value(); });
    if (complete || std::chrono::steady_clock::now() > until) return notices;
    std::this_thread::sleep_for(kPollInterval);
  }
}

std::string CallDesk::diagnosis(const CallEntry& call) const {
  services_->board->post(notice_key("failed", services_->rank), call.text());
  const Notices notices = gather_notices("failed", ranks_);
  std::vector<std::string> findings;
  std::vector<int64_t> silent, present;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    (notices[i] ? present : silent).push_back(ranks_[i]);
    if (notices[i] && *notices[i] != call.text()) {
      findings.push_back(cat("rank ", ranks_[i], " made another call: ", *notices[i]));
    }
  }
  if (const auto stopped = services_->board->read(kStoppedNotice)) findings.push_back(*stopped);
  if (!silent.empty()) findings.push_back(cat("silent ranks=[", join(silent, ", "), "]"));
  if (findings.empty()) findings.push_back("all ranks made this call");
  // Rank 0 keeps the board: it goes last.
  services_->board->post(notice_key("read", services_->rank), "");
  if (services_->rank == 0) gather_notices("read", present);
  return join(findings, "; ");
}

void CallDesk::fail(int64_t ticket, const std::string& reason) {
  services_->recorder->finish(ticket, CallState::Failed);
  const CallEntry call = services_->recorder->entry(ticket);
  std::string found;
  try {
    found = diagnosis(call);
  } catch (const std::exception&) {
    found = "rank 0, which keeps the notices of all ranks, does not answer";
  }
  throw CommError("parallel",
                  cat("a collective failed: call=", call.text(), ", after_s=", seconds_since(call.started), ", ", found,
                      ", reason=", first_line(reason)),
                  "Look at the log of the rank named; a rank that is only slow needs a longer --comm_timeout_s");
}

}  // namespace welkin::parallel
