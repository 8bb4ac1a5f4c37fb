// SPDX-License-Identifier: Apache-2.0
#include "launch/workers.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <optional>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "launch/job_secret.h"
#include "launch/process/crew.h"

namespace welkin::launch {
namespace {

using Clock = std::chrono::steady_clock;
using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr int kCommExit = static_cast<int>(ExitCode::Comm);

// All processes of the node while they run: when one fails, all end.
class Supervision {
 public:
  explicit Supervision(const WorkerPlan& plan) : plan_(plan) {}

  void start_all() {
    for (int64_t local = 0; local < plan_.num_local; ++local) start(local);
  }

  int wait_all() {
    while (crew_.is_busy()) {
      crew_.wait_for_news();
      crew_.pass_on_signals();
      for (const Worker& ended : crew_.reap()) judge(ended);
      if (failed_at_) crew_.press_on(*failed_at_, plan_.grace);
    }
    report();
    return culprit_ ? culprit_->ending.code : 0;
  }

 private:
  void start(int64_t local);
  void judge(const Worker& ended);
  void report() const;

  const WorkerPlan& plan_;
  Crew crew_;
  std::optional<Worker> culprit_;  // the failure that explains the others
  std::optional<Clock::time_point> failed_at_;
};

void Supervision::start(int64_t local) {
  const int64_t rank = plan_.node * plan_.num_local + local;
  crew_.start({.rank = rank,
               .command = plan_.command,
               .environment = worker_environment(plan_, local),
               .mark = plan_.prefix ? cat("[", rank, "] ") : std::string(),
               .listener = rank == 0 ? plan_.listener : -1});
}

void Supervision::judge(const Worker& ended) {
  if (ended.ending.code == 0) return;
  // A rank whose partners went away ends with the code of communication: a rank with another code is the reason.
  const bool explains =
      !culprit_ || (culprit_->ending.code == kCommExit && ended.ending.code != kCommExit && !crew_.has_sent_term());
  if (explains) culprit_ = ended;
  if (!failed_at_) failed_at_ = Clock::now();
}

void Supervision::report() const {
  if (!culprit_ || culprit_->ending.is_interrupt) return;  // the ranks have reported it themselves
  std::cerr << "welkin: [launch] rank " << culprit_->rank << " (process " << culprit_->pid << " on " << host_name() << ") "
            << culprit_->ending.words << "; all ranks have been stopped" << culprit_->ending.note << std::endl;
}

}  // namespace

Variables worker_environment(const WorkerPlan& plan, int64_t local_rank) {
  const int64_t rank = plan.node * plan.num_local + local_rank;
  Variables variables = {{"WORLD_SIZE", cat(plan.num_nodes * plan.num_local)},
                         {"RANK", cat(rank)},
                         {"WORLD_RANK", cat(rank)},
                         {"LOCAL_RANK", cat(local_rank)},
                         {"LOCAL_WORLD_SIZE", cat(plan.num_local)},
                         {"GROUP_RANK", cat(plan.node)},
                         {"GROUP_WORLD_SIZE", cat(plan.num_nodes)},
                         {"MASTER_ADDR", plan.master_address},
                         {"MASTER_ADDRESS", plan.master_address},
                         {"MASTER_PORT", cat(plan.master_port)},
                         {"WELKIN_LISTEN_FD", rank == 0 && plan.listener >= 0 ? cat(plan.listener) : std::string()},
                         {"WELKIN_LAUNCH", "1"},
                         {"WELKIN_PARENT", cat(getpid())}};
  variables.insert(variables.end(), plan.environment.begin(), plan.environment.end());
  return variables;
}

int run_workers(WorkerPlan plan) {
  // On several nodes each has a launcher of its own, and the user hands all of them the secret.
  const bool is_given = std::getenv("WELKIN_JOB_SECRET") != nullptr || std::getenv("WELKIN_JOB_SECRET_FILE") != nullptr;
  if (plan.num_nodes == 1 && !is_given) plan.environment.emplace_back("WELKIN_JOB_SECRET", random_token());
  Supervision supervision(plan);
  supervision.start_all();
  return supervision.wait_all();
}

}  // namespace welkin::launch
