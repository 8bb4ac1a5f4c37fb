// SPDX-License-Identifier: Apache-2.0
#include "train/benchy/benchy.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace welkin::train {
namespace {

constexpr std::array<const char*, 3> kKindNames{"IO", "SYNTHETIC", "FULL"};

size_t at_kind(BenchyKind kind) { return static_cast<size_t>(kind); }

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The population standard deviation, as numpy's std.
double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

// The fewest digits that give the same number back, as Python prints it.
std::string shortest_text(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  std::string digits(text.data(), end);
  const bool has_point = digits.find_first_of(".en") != std::string::npos;
  return has_point ? digits : digits + ".0";
}

}  // namespace

std::string BenchyTrial::label() const { return cat(kKindNames[at_kind(kind)], is_warmup ? "_WARMUP_" : "_", index); }

Benchy::Benchy(BenchyConfig config, int64_t num_ranks, int64_t samples_per_step, std::function<void(const std::string&)> say)
    : config_(std::move(config)),
      num_ranks_(num_ranks),
      samples_per_step_(static_cast<double>(samples_per_step)),
      say_(std::move(say)) {}

void Benchy::introduce() const {
  say_(config_.file.empty() ? "BENCHY::INFO::Message: Using default configuration."
                            : cat("BENCHY::INFO::Message: Using configuration file ", config_.file, "."));
  say_(cat("BENCHY::INFO::Message: Profiling mode: ", config_.profiler_mode, "."));
}

std::vector<BenchyTrial> Benchy::trials(BenchyKind kind) const {
  const BenchySection& section = config_.sections[at_kind(kind)];
  std::vector<BenchyTrial> list;
  if (!section.run_benchmark) return list;
  const auto add = [&](bool is_warmup, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      list.push_back({.kind = kind, .is_warmup = is_warmup, .index = i, .nbatches = section.nbatches});
    }
  };
  add(true, section.nwarmup);
  add(false, section.ntrials);
  return list;
}

void Benchy::start(const BenchyTrial& trial) {
  trial_ = trial;
  rates_.clear();
  is_running_ = false;
}

bool Benchy::tick(double now) {
  if (!is_running_) {
    is_running_ = true;
    began_ = last_ = now;
    return false;
  }
  rates_.push_back(samples_per_step_ / (now - last_));
  last_ = now;
  const auto done = static_cast<int64_t>(rates_.size());
  if (done % config_.report_freq == 0) {
    say_(cat("BENCHY::", trial_.label(), "::Iteration Throughput: ", shortest_text(rates_.back())));
  }
  if (done < trial_.nbatches) return false;
  close_trial(now);
  return true;
}

void Benchy::close_trial(double now) {
  const double seconds = now - began_, average = mean_of(rates_);
  const double throughput = static_cast<double>(trial_.nbatches) * samples_per_step_ / seconds;
  say_(cat("BENCHY::", trial_.label(), "::Average Iteration Throughput: ", shortest_text(average)));
  say_(cat("BENCHY::", trial_.label(), "::Trial Throughput: ", shortest_text(throughput)));
  if (trial_.is_warmup) return;
  Results& results = results_[at_kind(trial_.kind)];
  results.rates.push_back(rates_);
  results.avg_iter_throughput.push_back(average);
  results.trial_throughput.push_back(throughput);
  results.trial_time.push_back(seconds);
}

void Benchy::say_summary(BenchyKind kind, const char* prefix) const {
  if (trials(kind).empty()) return;
  const std::vector<double>& throughput = results_[at_kind(kind)].trial_throughput;
  std::array<char, 80> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "%.3f +/- %.3f", mean_of(throughput), deviation_of(throughput));
  say_(cat(prefix, kKindNames[at_kind(kind)], " average trial throughput: ", numbers.data()));
}

std::string Benchy::output_path() const { return (std::filesystem::path(config_.output_dir) / config_.output_filename).string(); }

std::string Benchy::finish() const {
  say_summary(BenchyKind::Io, "BENCHY::SUMMARY::");
  say_summary(BenchyKind::Synthetic, "BENCHY::SUMMARY:: ");  // the blank is benchy's
  say_summary(BenchyKind::Full, "BENCHY::SUMMARY::");
  nlohmann::ordered_json json;
  json["nranks"] = num_ranks_;
  for (size_t kind = 0; kind < kKindNames.size(); ++kind) {
    const Results& results = results_[kind];
    json[kKindNames[kind]] = {{"rates", results.rates},
                              {"avg_iter_throughput", results.avg_iter_throughput},
                              {"trial_throughput", results.trial_throughput},
                              {"trial_time", results.trial_time}};
  }
  return json.dump() + "\n";
}

}  // namespace welkin::train
