// SPDX-License-Identifier: Apache-2.0
#include "bench/step/traffic.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/process/host.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/device/device.h"

namespace welkin::bench {
namespace {

using parallel::CallTotal;

constexpr size_t kExchangeRepeats = 5;
// The record of an exchange lasts as long as the backward pass (data_parallel.cpp), so it does not tell the messages' time.
constexpr const char* kExchangeName = "gradient exchange";
constexpr const char *kGatherName = "all_gather", *kScatterName = "reduce_scatter";

std::string traffic_number(double value, const char* format) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

double call_seconds(const CallTotal& call, const Traffic& traffic) {
  if (call.name == kExchangeName) return traffic.exchange_alone_s;
  const auto steps = static_cast<double>(traffic.steps);
  if (call.group == traffic.shard_group) {
    if (call.name == kGatherName) return static_cast<double>(call.bytes) / steps * traffic.gather_s_per_byte;
    if (call.name == kScatterName) return static_cast<double>(call.bytes) / steps * traffic.scatter_s_per_byte;
  }
  return call.seconds / steps;
}

double bytes_per_second(const CallTotal& call, const Traffic& traffic) {
  const double seconds = call_seconds(call, traffic);
  return seconds > 0 ? static_cast<double>(call.bytes) / static_cast<double>(traffic.steps) / seconds : 0;
}

// The median over repetitions of the slowest rank.
template <typename Exchange>
double median_seconds(const parallel::Group& group, c10::Device device, const Exchange& exchange) {
  std::vector<double> seconds;
  for (size_t i = 0; i < kExchangeRepeats; ++i) {
    parallel::barrier(group);
    const Stopwatch watch;
    exchange();
    train::wait_for_stream(device);
    seconds.push_back(
        parallel::all_reduce(group, at::full({1}, watch.seconds(), at::kDouble), parallel::Reduction::Max).item<double>());
  }
  std::ranges::sort(seconds);
  return seconds[kExchangeRepeats / 2];
}

}  // namespace

std::vector<CallTotal> calls_since(const std::vector<CallTotal>& before, const std::vector<CallTotal>& now) {
  std::vector<CallTotal> calls;
  for (CallTotal total : now) {
    const auto same = std::find_if(before.begin(), before.end(),
                                   [&](const CallTotal& old) { return old.name == total.name && old.group == total.group; });
    if (same != before.end()) {
      total.calls -= same->calls;
      total.bytes -= same->bytes;
      total.seconds -= same->seconds;
    }
    if (total.calls > 0) calls.push_back(std::move(total));
  }
  return calls;
}

double seconds_of_exchange_alone(const parallel::GradientExchange& exchange, const parallel::Group& group,
                                 const at::TensorOptions& travels) {
  std::vector<at::Tensor> messages;
  for (const parallel::Bucket& bucket : exchange.buckets()) messages.push_back(at::zeros({bucket.bytes / 4}, travels));
  return median_seconds(group, travels.device(), [&] {
    for (const at::Tensor& message : messages) all_reduce_in_place(group, message);
  });
}

void time_sharded_calls(Traffic& traffic, const parallel::GradientExchange& exchange, const parallel::Group& group,
                        const at::TensorOptions& gradients) {
  int64_t bytes = 0;
  for (const parallel::Bucket& bucket : exchange.buckets()) bytes = std::max(bytes, bucket.bytes);
  if (bytes == 0) return;
  traffic.shard_group = group.text();
  const auto time = [&](const at::TensorOptions& travels, const auto& start) {
    const int64_t length = (bytes / 4 + group.size() - 1) / group.size();
    const at::Tensor whole = at::zeros({group.size(), length}, travels), part = at::zeros({length}, travels);
    const double seconds = median_seconds(group, travels.device(), [&] { start(whole, part).wait(); });
    return seconds / static_cast<double>(whole.nbytes());
  };
  traffic.gather_s_per_byte = time(gradients.dtype(at::kFloat), [&](const at::Tensor& whole, const at::Tensor& part) {
    return parallel::start_all_gather_into(group, whole, part);
  });
  traffic.scatter_s_per_byte = time(gradients, [&](const at::Tensor& whole, const at::Tensor& part) {
    return parallel::start_reduce_scatter_into(group, part, whole);
  });
}

Communication communication_of(const Traffic& traffic, double step_s, double no_comm_s) {
  Communication found;
  for (const CallTotal& call : traffic.calls) found.alone_s += call_seconds(call, traffic);
  found.is_told = step_s >= no_comm_s;
  found.exposed_s = std::clamp(step_s - no_comm_s, 0.0, std::max(found.alone_s, 0.0));
  return found;
}

std::string communication_text(const Traffic& traffic, const Communication& communication) {
  std::string text = cat("communication of a step: alone ", traffic_number(1e3 * communication.alone_s, "%.3g"), " ms, ");
  text += communication.is_told ? cat("exposed ", traffic_number(1e3 * communication.exposed_s, "%.3g"), " ms, hidden ",
                                      traffic_number(100 * communication.hidden_fraction(), "%.0f"), " %\n")
                                : std::string("of which nothing can be told: a step without it was no faster\n");
  for (const CallTotal& call : traffic.calls) {
    const auto steps = static_cast<double>(traffic.steps);
    text +=
        cat("    ", call.name, " of group ", call.group, ": ", traffic_number(static_cast<double>(call.calls) / steps, "%.3g"),
            " calls, ", format_bytes(static_cast<uint64_t>(static_cast<double>(call.bytes) / steps)), ", ",
            traffic_number(bytes_per_second(call, traffic) * 1e-9, "%.3g"), " GB/s\n");
  }
  return text;
}

void add_calls_json(nlohmann::ordered_json& json, const Traffic& traffic) {
  nlohmann::ordered_json& calls = json["communication"]["calls"] = nlohmann::ordered_json::array();
  for (const CallTotal& call : traffic.calls) {
    const auto steps = static_cast<double>(traffic.steps);
    calls.push_back({{"group", call.group},
                     {"collective", call.name},
                     {"calls_per_step", static_cast<double>(call.calls) / steps},
                     {"bytes_per_step", static_cast<double>(call.bytes) / steps},
                     {"bytes_per_s", bytes_per_second(call, traffic)}});
  }
}

void add_communication_json(nlohmann::ordered_json& json, const Traffic& traffic, const Communication& communication) {
  json["communication"] = {{"alone_s", communication.alone_s},
                           {"exposed_s", communication.exposed_s},
                           {"hidden_fraction", communication.hidden_fraction()},
                           {"is_told", communication.is_told}};
  add_calls_json(json, traffic);
}

}  // namespace welkin::bench
