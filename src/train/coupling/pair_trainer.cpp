// SPDX-License-Identifier: Apache-2.0
#include "train/coupling/pair_trainer.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <span>
#include <utility>

#include "config/schema/builtin_models.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/signal_stack.h"
#include "core/text.h"
#include "data/storage/stored_array.h"
#include "train/coupling/hosted_run.h"
#include "train/interchange/sample_spec_json.h"
#include "train/run/run_folder.h"

namespace welkin::train {
namespace {

using data::PairStream;

int64_t place_of(const data::ArraySpec& array, const std::string& channel, const char* side) {
  const auto found = std::ranges::find(array.channels, channel);
  if (found != array.channels.end()) return std::distance(array.channels.begin(), found);
  throw ConfigError("online", cat("the pairs have no such ", side, ": channel=", channel),
                    cat("They have: ", join(array.channels, ", ")));
}

// The sum is not finite if a value is not, or if finite values overflow.
bool are_finite(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * 0;
  return sum == 0;
}

}  // namespace

PairTrainer::PairTrainer(std::unique_ptr<Registries> registries, config::Resolved resolved, std::string init_from)
    : registries_(std::move(registries)), resolved_(std::move(resolved)), init_from_(std::move(init_from)) {
  const config::RunConfig& config = resolved_.config;
  if (config.data.dataset != config::kOnline) {
    throw ConfigError("online", cat("this run reads its own data: dataset=", config.data.dataset),
                      cat("Set dataset to ", config::kOnline, " for pairs that a program hands over"));
  }
  take_facts_of_run();
  spec_ = data::online_spec(config, facts_);
  shape_.assign(spec_.input.shape.begin() + 1, spec_.input.shape.end());
  takes_nan_ = data::fills_points(config.data.nan_policy);
  stream_ = std::make_shared<PairStream>(data::stream_options(config));
  is_set_.assign(spec_.input.channels.size() + spec_.target.channels.size(), false);
}

PairTrainer::~PairTrainer() { end(SIGTERM); }

// A resumed run keeps the normalisation with which it began.
void PairTrainer::take_facts_of_run() {
  constexpr uint64_t kLargestFile = uint64_t{64} << 20;
  const std::filesystem::path file = RunFolder(resolved_.config, 1).data_file();
  is_resumed_ = resolved_.config.loop.resume && std::filesystem::exists(file);
  if (!is_resumed_) return;
  const data::SampleSpec spec = interchange::sample_spec_from_json(
      read_file(file, kLargestFile),
      {.path = file.string(), .component = "online", .remedy = "Restore it from a copy of the run, or begin another run"});
  const auto take = [&](const data::ArraySpec& array, const std::vector<double>& mean, const std::vector<double>& std) {
    for (size_t c = 0; c < array.channels.size(); ++c)
      facts_.channels[array.channels[c]] = {.unit = array.units[c], .mean = mean[c], .std = std[c]};
  };
  take(spec.input, spec.input_mean, spec.input_std);
  take(spec.target, spec.target_mean, spec.target_std);
  facts_.latitude = spec.latitude, facts_.longitude = spec.longitude;
}

std::filesystem::path PairTrainer::folder() const { return RunFolder(resolved_.config, 1).path(); }

void PairTrainer::set_channel(const std::string& name, const data::OnlineFacts::Channel& channel) {
  if (thread_.joinable()) throw ConfigError("online", cat("the run has begun: channel=", name), "Say this before the first pair");
  if (!(std::isfinite(channel.mean) && std::isfinite(channel.std) && channel.std >= 0)) {
    throw ConfigError("online", cat("no mean and deviation: channel=", name, ", mean=", channel.mean, ", std=", channel.std),
                      "Give a deviation above 0, or 0 for that of the first pairs");
  }
  data::OnlineFacts facts = facts_;
  data::OnlineFacts::Channel& known = facts.channels[name];
  const bool differs = channel.std > 0 && (channel.mean != known.mean || channel.std != known.std);
  if (is_resumed_ && differs) {
    throw ConfigError("online",
                      cat("the run began with other numbers: channel=", name, ", mean=", known.mean, ", std=", known.std,
                          ", given mean=", channel.mean, ", std=", channel.std),
                      "Leave them out, or begin another run");
  }
  known.unit = channel.unit;
  if (channel.std > 0) known.mean = channel.mean, known.std = channel.std;
  spec_ = data::online_spec(resolved_.config, facts);
  facts_ = std::move(facts);
}

void PairTrainer::set_grid(std::vector<double> latitude, std::vector<double> longitude) {
  if (thread_.joinable()) throw ConfigError("online", "the run has begun", "Give the grid before the first pair");
  data::OnlineFacts facts = facts_;
  facts.latitude = std::move(latitude), facts.longitude = std::move(longitude);
  spec_ = data::online_spec(resolved_.config, facts);
  facts_ = std::move(facts);
}

void PairTrainer::set(Side side, const std::string& channel, const void* values, const FieldLayout& layout) {
  const bool is_input = side == Side::Input;
  const data::ArraySpec& array = is_input ? spec_.input : spec_.target;
  const int64_t place = place_of(array, channel, is_input ? "input" : "target");
  std::vector<float>& all = is_input ? pair_.input : pair_.target;
  all.resize(static_cast<size_t>(data::whole_region(array.shape).num_values()));
  const size_t count = all.size() / array.channels.size();
  const std::span<float> field = std::span<float>(all).subspan(static_cast<size_t>(place) * count, count);
  const at::Tensor from = view_of(const_cast<void*>(values), shape_, layout);  // from_blob takes no pointer to const
  view_of(field.data(), shape_, {}).copy_(from);
  const auto number = static_cast<size_t>(place) + (is_input ? 0 : spec_.input.channels.size());
  const auto bad = [&](float value) { return takes_nan_ ? std::isinf(value) : !std::isfinite(value); };
  is_set_[number] = are_finite(field) || std::ranges::none_of(field, bad);
  if (is_set_[number]) return;
  throw ConfigError(
      "online",
      cat("a field has values that are not finite: channel=", channel, ", points=", std::ranges::count_if(field, bad),
          ", pair=", stream_->given()),
      takes_nan_ ? "Look for an overflow" : "Fill them, or set nan_policy to hole for points without a value (NaN)");
}

PairStream::Given PairTrainer::give(std::chrono::milliseconds patience) {
  std::vector<std::string> absent;
  for (size_t i = 0; i < is_set_.size(); ++i) {
    const size_t inputs = spec_.input.channels.size();
    if (!is_set_[i])
      absent.push_back(i < inputs ? cat("input ", spec_.input.channels[i]) : cat("target ", spec_.target.channels[i - inputs]));
  }
  if (!absent.empty()) {
    throw ConfigError("online", cat("channels of the pair have no values yet: ", join(absent, ", ")),
                      "Set every input and every target of each pair");
  }
  if (!thread_.joinable()) start();
  constexpr std::chrono::milliseconds kLook{1000};
  const bool for_ever = patience.count() < 0;
  PairStream::Given given = PairStream::Given::Full;
  do {
    given = stream_->give(pair_, for_ever ? kLook : patience);
  } while (for_ever && given == PairStream::Given::Full);
  if (given == PairStream::Given::Taken) is_set_.assign(is_set_.size(), false);
  return given;
}

void PairTrainer::start() {
  add_online(registries_->datasets, facts_, stream_);
  {
    const std::lock_guard lock(mutex_);
    progress_.is_running = true;
  }
  thread_ = std::thread([this] { run(); });
}

void PairTrainer::run() {
  pthread_setname_np(pthread_self(), "welkin-train");
  const SignalStack stack;  // for the handlers of the host
  try {
    outcome_ = run_hosted(
        {.resolved = resolved_, .registries = *registries_, .interrupt = interrupt_, .init_from = init_from_, .listener = this});
  } catch (...) {
    error_ = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    progress_.is_running = false;
  }
  stream_->fail(error_);
}

void PairTrainer::end(int signal) {
  if (!thread_.joinable()) return;
  if (signal != 0) interrupt_.request(signal);
  stream_->end();
  thread_.join();
}

RunOutcome PairTrainer::finish() {
  WELKIN_CHECK(!is_over_, "a run that has been ended");
  is_over_ = true;
  if (!thread_.joinable()) throw DataError("online", "no pair was handed over", "Hand pairs over before the end is announced");
  end(0);
  if (error_) std::rethrow_exception(error_);
  return outcome_;
}

TrainingProgress PairTrainer::progress() const {
  const std::lock_guard lock(mutex_);
  TrainingProgress now = progress_;
  now.pairs = stream_->given(), now.waited_s = stream_->waited_s();
  return now;
}

void PairTrainer::stepped(const ReachedStep& at) {
  const std::lock_guard lock(mutex_);
  progress_.reached = at;
}

void PairTrainer::validated(const ReachedStep& at, double train_loss, double valid_loss, double /*rate*/) {
  const std::lock_guard lock(mutex_);
  progress_.reached = at;
  progress_.train_loss = train_loss, progress_.valid_loss = valid_loss;
}

}  // namespace welkin::train
