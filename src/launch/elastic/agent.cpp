// SPDX-License-Identifier: Apache-2.0
#include "launch/elastic/agent.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <iostream>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "launch/elastic/job_size.h"
#include "launch/process/crew.h"

namespace welkin::launch {
namespace {

using AgentClock = std::chrono::steady_clock;

constexpr auto kFirstPause = std::chrono::milliseconds(1000);  // before a lost process is started again; doubles
constexpr auto kLongestPause = std::chrono::milliseconds(30'000);
constexpr auto kCalm = std::chrono::seconds(60);  // without a loss, after which the pause is the first again
constexpr auto kNodeSilence = std::chrono::seconds(15);
constexpr auto kStopPatience = std::chrono::milliseconds(15'000);
constexpr auto kLongestLook = std::chrono::milliseconds(1000);

double seconds_from(AgentClock::time_point start) { return std::chrono::duration<double>(AgentClock::now() - start).count(); }

constexpr auto kUsageExit = static_cast<int64_t>(ExitCode::Usage);

bool is_fatal_code(int64_t code) { return code == kUsageExit || code == static_cast<int64_t>(ExitCode::Interrupted); }

// A process whose device or memory computes wrong numbers would do so again.
bool is_defective_code(int64_t code) { return code == static_cast<int64_t>(ExitCode::Defective); }

// The further task of the first node's launcher: it reads all slots, decides, and tells all nodes.
class Leader {
 public:
  Leader(const ElasticPlan& plan, JobBoard& board) : plan_(plan), board_(board), beats_(static_cast<size_t>(plan.num_nodes)) {}

  void lead() {
    const JobView job = look();
    if (const std::string problem = size_problem(board_, plan_); !problem.empty()) {
      return follow(job, {.kind = Decision::Kind::End, .why = cat(problem, ". ", kSizeRemedy), .code = kUsageExit});
    }
    follow(job, decide(job, {.silent_s = std::chrono::duration<double>(plan_.grace).count(), .join_s = plan_.join_s}));
  }
  // True if the launchers of all nodes that answer know that the job is over.
  bool all_know() {
    for (int64_t node = 1; node < plan_.num_nodes; ++node) {
      const Beat& beat = beats_[static_cast<size_t>(node)];
      const bool answers = !beat.text.empty() && AgentClock::now() - beat.since <= kNodeSilence;
      if (answers && !board_.read(bye_key(node))) return false;
    }
    return true;
  }

 private:
  struct Beat {
    std::string text;
    AgentClock::time_point since = AgentClock::now();
  };

  JobView look();
  SlotView view_at(int64_t node, int64_t local);
  void follow(const JobView& job, const Decision& decision);
  void tell(RoundState state);
  void begin(const Decision& decision);
  void name_spares(const JobView& job);

  const ElasticPlan& plan_;
  JobBoard& board_;
  std::vector<Beat> beats_;  // of the nodes
  int64_t round_ = 0;
  std::vector<ProcessId> members_, spares_;  // the spare ones that were named
  RoundState state_ = RoundState::Open;
  AgentClock::time_point began_ = AgentClock::now(), closing_since_ = began_;
};

std::vector<int64_t> numbers_in(const std::string& text) {
  std::vector<int64_t> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc()) numbers.push_back(number);
    at = error == std::errc() ? next : at + 1;
  }
  return numbers;
}

SlotView Leader::view_at(int64_t node, int64_t local) {
  SlotView view;
  view.slot.id = {.node = node, .local = local, .start = 0};
  const auto text = board_.read(slot_key(node, local));
  const auto slot = text ? parse_slot(*text) : std::nullopt;
  if (!slot) {  // its launcher has not come yet
    if (seconds_from(began_) > plan_.join_s) view.slot.state = Slot::State::Gone;
    view.slot.words = cat("the launcher of node ", node, " has not come");
    return view;
  }
  view.slot = *slot;
  if (slot->state != Slot::State::Running) return view;
  const std::string id = text_of(slot->id);
  view.is_ready = board_.read(hello_key(id)).has_value();
  view.has_left = board_.read(left_key(round_, id)).has_value();
  view.is_seen = state_ == RoundState::Closing && board_.read(seen_key(round_, id)).has_value();
  return view;
}

JobView Leader::look() {
  JobView job{.limits = plan_.limits,
              .sizes = numbers_in(board_.read(kSizesKey).value_or("")),
              .round = round_,
              .members = members_,
              .is_closing = state_ == RoundState::Closing,
              .closing_s = seconds_from(closing_since_),
              .waiting_s = seconds_from(began_),
              .slots = {}};
  for (int64_t node = 0; node < plan_.num_nodes; ++node) {
    Beat& beat = beats_[static_cast<size_t>(node)];
    std::string text = node == plan_.node ? "" : board_.read(beat_key(node)).value_or("");
    if (std::exchange(beat.text, text) != text || node == plan_.node) beat.since = AgentClock::now();
    const bool is_silent = AgentClock::now() - beat.since > kNodeSilence && !text.empty();
    for (int64_t local = 0; local < plan_.num_local; ++local) {
      SlotView view = view_at(node, local);
      if (is_silent && view.slot.state == Slot::State::Running) {
        view.slot.state = Slot::State::Gone;
        view.slot.words = cat("the launcher of node ", node, " does not answer");
      }
      job.slots.push_back(std::move(view));
    }
  }
  return job;
}

void Leader::tell(RoundState state) {
  if (state_ == state) return;
  if (state == RoundState::Closing) closing_since_ = AgentClock::now();
  state_ = state;
  board_.set(kNowKey, now_text(round_, state));
}

void Leader::begin(const Decision& decision) {
  ++round_;
  members_ = decision.members;
  const Round round{
      .number = round_, .has_begun = board_.read(kBegunKey).has_value(), .note = decision.why, .members = decision.members};
  board_.set(round_key(round_), text_of(round));
  state_ = RoundState::Open;
  board_.set(kNowKey, now_text(round_, state_));
  if (decision.why.empty()) return;
  std::cerr << cat("welkin: [launch] ", decision.why, "; round ", round_, " begins with ranks=", members_.size(), "\n")
            << std::flush;
}

void Leader::follow(const JobView& job, const Decision& decision) {
  for (const ProcessId& id : decision.kill) board_.set(order_key(text_of(id)), "end");
  switch (decision.kind) {
    case Decision::Kind::Wait:
      return name_spares(job);
    case Decision::Kind::Start:
      return begin(decision);
    case Decision::Kind::Close:
      return tell(RoundState::Closing);
    case Decision::Kind::Request:
      return tell(RoundState::Requested);
    case Decision::Kind::End:
      if (!decision.why.empty()) std::cerr << cat("welkin: [launch] ", decision.why, "\n") << std::flush;
      return board_.set(kEndKey, cat(decision.code, " ", job.round));
  }
}

// Each process is named once: the last to come is spare, which need not be on the last node.
void Leader::name_spares(const JobView& job) {
  if (round_ == 0 || state_ != RoundState::Open) return;
  for (const ProcessId& id : waiting_of(job)) {
    if (std::ranges::find(spares_, id) != spares_.end()) continue;
    spares_.push_back(id);
    std::cerr << cat("welkin: [launch] rank ", id.node * plan_.num_local + id.local, " on node ", id.node,
                     " is spare: it takes the place of one that is lost\n")
              << std::flush;
  }
}

// All processes of the node while they run.
class Agent {
 public:
  Agent(const ElasticPlan& plan, const std::function<std::unique_ptr<JobBoard>()>& make_board)
      : plan_(plan), board_(make_board()), slots_(static_cast<size_t>(plan.num_local)) {
    tell_size(*board_, plan_);
    if (plan_.node == 0) leader_.emplace(plan_, *board_);
  }

  int run() {
    for (int64_t local = 0; local < plan_.num_local; ++local) start(local);
    while (crew_.is_busy() || may_start() || (leader_ && !end_code_)) {
      crew_.wait_for_news();
      // The signal is meant to end all, or to make them save and end. A process that starts again would not know of it.
      if (!crew_.pass_on_signals().empty()) is_stopping_ = true;
      for (const Worker& ended : crew_.reap()) note_end(ended);
      try {
        talk();
      } catch (const CommError&) {
        if (leader_ || crew_.any_running() || may_start()) throw;
        break;  // the board's launcher is done, as this node is
      }
      end_stopped();
      if (end_code_.value_or(0) != 0) crew_.press_on(ended_at_, plan_.grace);  // one that is done ends by itself
    }
    leader_ ? wait_for_others() : say_bye();
    return static_cast<int>(end_code_.value_or(last_code_));
  }

 private:
  struct Place {
    Slot slot;
    pid_t pid = 0;
    AgentClock::time_point start_at{};
    AgentClock::duration stopped_for{};
    bool is_news = false;  // the board does not have it yet
  };

  // All tasks that need the board; there are none once the job is over.
  void talk() {
    start_due();
    if (end_code_) return;
    for (Place& place : slots_) {
      if (std::exchange(place.is_news, false))
        board_->set(slot_key(place.slot.id.node, place.slot.id.local), text_of(place.slot));
    }
    beat();
    const std::string problem = leader_ ? "" : size_problem(*board_, plan_);
    if (!problem.empty()) throw ConfigError("launch", problem, kSizeRemedy);
    if (leader_) leader_->lead();
    look_at_board();
  }
  void say_bye();
  void wait_for_others();
  void start(int64_t local);
  void note_end(const Worker& ended);
  void plan_start(Place& place);
  void start_due();
  void beat();
  void look_at_board();
  void end_stopped();
  int64_t rank_of(const Place& place) const { return plan_.node * plan_.num_local + place.slot.id.local; }
  bool may_start() const {
    return !end_code_ && std::ranges::any_of(slots_, [](const Place& place) { return place.slot.state == Slot::State::Waiting; });
  }

  const ElasticPlan& plan_;
  Crew crew_;  // before the board: it blocks the signals
  std::unique_ptr<JobBoard> board_;
  std::optional<Leader> leader_;
  std::vector<Place> slots_;
  int64_t restarts_ = 0, losses_in_row_ = 0;
  AgentClock::time_point lost_at_{};
  AgentClock::time_point beat_at_{};
  int64_t beats_ = 0;
  AgentClock::time_point stops_at_ = AgentClock::now();  // of the latest check for stopped processes
  bool is_stopping_ = false;
  int64_t last_code_ = 0;  // of the latest process that failed
  std::optional<int64_t> end_code_;
  AgentClock::time_point ended_at_{};
};

void Agent::say_bye() {
  try {
    board_->set(bye_key(plan_.node), "bye");
  } catch (const CommError&) {
    return;  // the reader is gone
  }
}

// The board ends with this process. A launcher that finds it gone cannot tell a run that is done from one that is lost.
void Agent::wait_for_others() {
  if (const int64_t strangers = board_->strangers(); strangers > 0) {
    std::cerr << cat("welkin: [launch] ", strangers,
                     " connections to the board of the job were closed: they did not have the job's secret\n")
              << std::flush;
  }
  const auto until = AgentClock::now() + plan_.grace;
  while (!leader_->all_know() && AgentClock::now() < until) {
    crew_.wait_for_news();
    if (!crew_.pass_on_signals().empty()) return;
  }
}

void Agent::start(int64_t local) {
  Place& place = slots_[static_cast<size_t>(local)];
  place.slot.id = {.node = plan_.node, .local = local, .start = place.pid == 0 ? 0 : place.slot.id.start + 1};
  place.slot.state = Slot::State::Running;
  const int64_t rank = rank_of(place);
  WorkerStart worker{.rank = rank,
                     .command = plan_.command,
                     .environment = plan_.environment(local),
                     .mark = plan_.prefix ? cat("[", rank, "] ") : std::string()};
  worker.environment.emplace_back(kElasticId, text_of(place.slot.id));
  worker.environment.emplace_back(kElasticLimits, cat(plan_.limits.least, ":", plan_.limits.most));
  place.pid = crew_.start(worker);
  place.is_news = true;
}

void Agent::note_end(const Worker& ended) {
  const auto found = std::ranges::find_if(slots_, [&](const Place& place) { return place.pid == ended.pid; });
  if (found == slots_.end()) return;
  Slot& slot = found->slot;
  found->is_news = true;
  slot.code = ended.ending.code;
  if (slot.code == 0) {
    slot.state = Slot::State::Done;
    return;
  }
  last_code_ = slot.code;
  slot.words = cat("rank ", ended.rank, " (process ", ended.pid, " on ", host_name(), ") ", ended.ending.words);
  slot.is_fatal = is_fatal_code(slot.code);
  if (is_defective_code(slot.code)) {
    slot.words += " since it computes wrong numbers, and is left out from now on";
    slot.state = Slot::State::Gone;
    return;
  }
  plan_start(*found);
}

// Plans another start, later and later while losses follow each other, unless the job ends.
void Agent::plan_start(Place& place) {
  const bool may = !place.slot.is_fatal && !is_stopping_ && !end_code_ && restarts_ < plan_.max_restarts;
  place.slot.state = may ? Slot::State::Waiting : Slot::State::Gone;
  if (!may) return;
  const auto now = AgentClock::now();
  losses_in_row_ = now - std::exchange(lost_at_, now) < kCalm ? losses_in_row_ + 1 : 0;
  const auto doubled = kFirstPause * (int64_t{1} << std::min<int64_t>(losses_in_row_, 10));
  const auto pause = std::min<std::chrono::milliseconds>(doubled, kLongestPause);
  ++restarts_;
  place.start_at = now + pause;
  std::cerr << cat("welkin: [launch] ", place.slot.words, ". It is started again in ",
                   std::chrono::duration<double>(pause).count(), " s: start ", restarts_, " of ", plan_.max_restarts, "\n")
            << std::flush;
}

void Agent::start_due() {
  for (Place& place : slots_) {
    if (place.slot.state != Slot::State::Waiting) continue;
    if (is_stopping_ || end_code_) {
      place.slot.state = Slot::State::Gone;
      place.is_news = true;
    } else if (AgentClock::now() >= place.start_at) {
      start(place.slot.id.local);
    }
  }
}

void Agent::beat() {
  if (leader_ || AgentClock::now() - beat_at_ < std::chrono::seconds(1)) return;
  beat_at_ = AgentClock::now();
  board_->set(beat_key(plan_.node), cat(++beats_));
}

void Agent::look_at_board() {
  if (const auto end = board_->read(kEndKey)) {
    end_code_ = numbers_in(*end).empty() ? 1 : numbers_in(*end).front();
    ended_at_ = AgentClock::now();
    return;
  }
  const auto now = parse_now(board_->read(kNowKey).value_or(""));
  if (!now || now->state != RoundState::Closing) return;
  for (const Place& place : slots_) {
    if (place.slot.state != Slot::State::Running || !board_->read(order_key(text_of(place.slot.id)))) continue;
    crew_.signal(place.pid, SIGKILL);
  }
}

// A stopped process does not answer. If all of a round are stopped, or one is alone in it, no other process notices. Time
// counts only while this process runs: a batch system may suspend the whole job.
void Agent::end_stopped() {
  const auto now = AgentClock::now();
  const auto passed = std::min<AgentClock::duration>(now - std::exchange(stops_at_, now), kLongestLook);
  const std::chrono::milliseconds limit = is_stopping_ || end_code_ ? plan_.grace : kStopPatience;
  for (Place& place : slots_) {
    const bool is_stopped = place.slot.state == Slot::State::Running && crew_.is_stopped(place.pid);
    place.stopped_for = is_stopped ? place.stopped_for + passed : AgentClock::duration{};
    if (place.stopped_for < limit || !is_stopped) continue;
    std::cerr << cat("welkin: [launch] rank ", rank_of(place), " (process ", place.pid, " on ", host_name(),
                     ") is stopped (SIGSTOP) and did not go on within ", std::chrono::duration<double>(limit).count(),
                     " s: it is ended\n")
              << std::flush;
    crew_.signal(place.pid, SIGKILL);
  }
}

}  // namespace

int run_elastic(const ElasticPlan& plan, const std::function<std::unique_ptr<JobBoard>()>& make_board) {
  return Agent(plan, make_board).run();
}

}  // namespace welkin::launch
