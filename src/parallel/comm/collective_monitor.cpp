// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/collective_monitor.h"

#include <algorithm>
#include <cmath>
#include <string_view>
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

}  // namespace

std::string reason_of(const std::string& said) {
  std::string_view reason = said;
  // "[/pytorch/third_party/gloo/pair.cc:547] Connection closed"
  if (const size_t end = reason.find("] "); reason.starts_with("[/") && end != std::string_view::npos)
    reason.remove_prefix(end + 2);
  return std::string(reason.substr(0, std::min(reason.find('\n'), size_t{200})));
}

std::string stopped_key(int64_t rank) { return cat("left/", rank); }

std::string status_key(int64_t rank) { return cat("doing/", rank); }

std::string status_text(const FlightRecorder& recorder) {
  const auto tenths = [](std::chrono::steady_clock::time_point since) { return std::round(seconds_since(since) * 10) / 10; };
  if (const auto open = recorder.oldest_open()) return cat("in ", open->text(), "\n", tenths(open->started));
  if (const auto last = recorder.last())
    return cat("out makes no call; its last, ", last->text(), ", ended\n", tenths(last->ended));
  return "out has made no call yet\n0";
}

CollectiveMonitor::CollectiveMonitor(std::shared_ptr<const CallServices> services, std::string group_text,
                                     std::vector<int64_t> ranks)
    : services_(std::move(services)), group_text_(std::move(group_text)), ranks_(std::move(ranks)) {}

int64_t CollectiveMonitor::begin(const char* name, std::string shape, int64_t bytes, bool is_on_gpu) {
  return services_->recorder->start({.sequence = ++sequence_,
                                     .name = name,
                                     .shape = std::move(shape),
                                     .group = group_text_,
                                     .bytes = bytes,
                                     .is_on_gpu = is_on_gpu,
                                     .started = {}});
}

std::string CollectiveMonitor::member_key(const char* key, int64_t rank) const { return cat(key, "/", group_text_, "/", rank); }

std::vector<CollectiveMonitor::Member> CollectiveMonitor::ask_members() const {
  std::vector<Member> members;
  for (const int64_t rank : ranks_) {
    members.push_back({.rank = rank,
                       .failed = services_->kv_store->read(member_key("failed", rank)),
                       .left = services_->kv_store->read(stopped_key(rank)),
                       .doing = services_->kv_store->read(status_key(rank))});
  }
  return members;
}

// What the store has when all have failed too, or when all are known and some time has gone by, in which they might still fail;
// at the latest after the grace time. Other ranks than the first leave sooner: a member whose own partners all live learns of a
// failure when they end, and is to be heard before the first one judges.
std::vector<CollectiveMonitor::Member> CollectiveMonitor::await_members() const {
  const auto timeout = services_->rank == 0 ? services_->grace : services_->grace / 6;
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    std::vector<Member> members = ask_members();
    const bool all_failed = std::ranges::all_of(members, [](const Member& m) { return m.failed || m.left; });
    const bool all_known = std::ranges::all_of(members, [](const Member& m) { return m.is_known(); });
    const auto waited = std::chrono::steady_clock::now() - start;
    if (services_->have_parted() || all_failed || (all_known && waited > services_->grace / 3) || waited > timeout)
      return members;
    std::this_thread::sleep_for(kPollInterval);
  }
}

// Until every member that has failed has read what the store has, or the grace time is over.
void CollectiveMonitor::await_readers(const std::vector<Member>& members) const {
  const auto until = std::chrono::steady_clock::now() + services_->grace;
  for (const Member& member : members) {
    if (!member.failed) continue;
    while (!services_->have_parted() && !services_->kv_store->read(member_key("read", member.rank)) &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kPollInterval);
    }
  }
}

// Nothing about a member that made this call, or that is silent.
std::optional<std::string> CollectiveMonitor::finding(const Member& member, const CallEntry& call) const {
  // Members of a pipeline send and receive, each in an order of its own; neighbours in a box exchange other shapes.
  const bool is_message = call.name == "send" || call.name == "receive" || call.name == "send_receive";
  const auto other = [&](const std::string& text) {
    return cat("rank ", member.rank, is_message ? " waits in " : " made another call: ", text);
  };
  if (member.failed) return *member.failed == call.text() ? std::nullopt : std::optional(other(*member.failed));
  if (member.left) return cat("rank ", member.rank, " stopped: ", *member.left);
  if (!member.doing) return {};
  const size_t line = member.doing->find('\n');
  const std::string seconds = member.doing->substr(std::min(line + 1, member.doing->size()));
  if (member.doing->starts_with("out "))
    return cat("rank ", member.rank, " ", member.doing->substr(4, line - 4), " ", seconds, " s ago");
  const std::string text = member.doing->substr(3, line - 3);
  if (text == call.text()) return {};
  if (text.find(cat(" of group ", group_text_, ", ")) != std::string::npos) return other(text);
  return cat("rank ", member.rank, " waits in ", text, " since ", seconds, " s");
}

std::string CollectiveMonitor::diagnosis(const CallEntry& call) const {
  services_->kv_store->set(member_key("failed", services_->rank), call.text());
  services_->kv_store->set_if_absent(kAlarmKey, cat(services_->rank));
  const std::vector<Member> members = await_members();
  std::vector<std::string> findings;
  std::vector<int64_t> silent;
  for (const Member& member : members) {
    if (!member.is_known()) silent.push_back(member.rank);
    if (const auto found = finding(member, call)) findings.push_back(*found);
  }
  const auto stopped = services_->kv_store->read(kStoppedKey);  // perhaps of another group
  if (stopped && std::ranges::find(findings, *stopped) == findings.end()) findings.push_back(*stopped);
  if (!silent.empty()) findings.push_back(cat("silent ranks=[", join(silent, ", "), "]"));
  if (findings.empty()) findings.push_back("all ranks made this call");
  // Rank 0 keeps the store: it goes last.
  services_->kv_store->set(member_key("read", services_->rank), "");
  if (services_->rank == 0) await_readers(members);
  return join(findings, "; ");
}

void CollectiveMonitor::fail(int64_t ticket, const std::string& reason) {
  services_->recorder->finish(ticket, CallState::Failed);
  const CallEntry call = services_->recorder->entry(ticket);
  std::string found = "the round of these ranks is over";
  try {
    if (!services_->have_parted()) found = diagnosis(call);
  } catch (const std::exception&) {
    found = "rank 0, which keeps the notices of all ranks, does not answer";
  }
  throw CommError("parallel",
                  cat("a collective failed: call=", call.text(), ", after_s=", seconds_since(call.started), ", ", found,
                      ", reason=", reason_of(reason)),
                  "Look at the log of the rank named; a rank that is only slow needs a longer --comm_timeout_s");
}

}  // namespace welkin::parallel
