// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling/collectives_bench.h"

#include <ATen/ops/ones.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <utility>

#include "bench/scaling/bench_timing.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/device/device.h"

namespace welkin::bench {
namespace {

using parallel::Group;
using parallel::Lengths;

// One call with a tensor of `values` elements, a multiple of the group's size.
class CollectiveCall {
 public:
  CollectiveCall(const Group& group, plan::CollectiveKind kind, int64_t values, c10::Device device)
      : group_(group),
        kind_(kind),
        whole_(at::ones({values}, device)),
        part_(at::ones({values / group.size()}, device)),
        rows_(at::ones({group.size(), values / group.size()}, device)),
        lengths_(static_cast<size_t>(group.size()), values / group.size()),
        ones_(static_cast<size_t>(group.size()), 1) {}

  // Sends, and waits until the device has finished.
  void operator()() {
    send();
    train::wait_for_stream(whole_.device());
  }

 private:
  void send() {
    switch (kind_) {
      case plan::CollectiveKind::AllReduce:
        return all_reduce_in_place(group_, whole_, parallel::Reduction::Max);  // the values do not change
      case plan::CollectiveKind::AllGather:
        all_gather(group_, part_, 0, lengths_);
        return;
      case plan::CollectiveKind::ReduceScatter:
        reduce_scatter(group_, whole_, 0, lengths_);
        return;
      case plan::CollectiveKind::AllToAll:
        all_to_all(group_, rows_, {.split_dim = 0, .split_lengths = ones_, .join_dim = 1, .join_lengths = lengths_});
        return;
      case plan::CollectiveKind::Broadcast:
        return broadcast(group_, whole_, 0);
      default:
        return turn();
    }
  }

  // Sends to the next rank and receives from the previous one, as in a ring.
  void turn() {
    const int64_t size = group_.size();
    if (!arriving_.defined()) arriving_ = at::ones({whole_.numel()}, whole_.options());
    const int64_t next = (group_.group_rank() + 1) % size, previous = (group_.group_rank() + size - 1) % size;
    start_exchange(group_, {{whole_, next}}, {{arriving_, previous}}).wait();
  }

  const Group& group_;
  plan::CollectiveKind kind_;
  at::Tensor whole_, part_, rows_, arriving_;
  Lengths lengths_, ones_;
};

// The median over repetitions; every rank makes the same number of them.
double median_seconds(CollectiveCall& call, const Group& world_group, double budget) {
  call();
  Stopwatch first;
  call();
  const double once = of_slowest(world_group, first.seconds());
  const auto repeats = static_cast<size_t>(std::clamp(budget / std::max(once, 1e-7), 3.0, 200.0));
  std::vector<double> seconds;
  parallel::barrier(world_group);
  for (size_t i = 0; i < repeats; ++i) {
    const Stopwatch watch;
    call();
    seconds.push_back(watch.seconds());
  }
  return of_slowest(world_group, median_of(std::move(seconds)));
}

std::string size_text(int64_t bytes) { return bytes < 1 << 20 ? cat(bytes >> 10, " KiB") : cat(bytes >> 20, " MiB"); }

std::string rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return "0";
  const double scale = std::pow(10.0, digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))));
  return cat(std::round(value * scale) / scale);
}

plan::CollectiveKind kind_named(const std::string& name) {
  if (const auto kind = plan::collective_named(name)) return *kind;
  throw DataError("bench", cat("unknown collective in a calibration: name=", name), "Write it anew with bench --collectives");
}

}  // namespace

CollectivesReport run_collectives_bench(const parallel::MeshGroups& groups, const CollectivesOptions& options) {
  constexpr std::array<std::pair<const char*, parallel::AxisSet>, 3> kAxes{
      {{"dp", parallel::kDp}, {"tp", parallel::Axis::Tp}, {"cp", parallel::Axis::Cp}}};
  const Group& world_group = groups.along(parallel::kDp | parallel::Axis::Tp | parallel::kSampleParts);
  CollectivesReport report;
  report.device = c10::DeviceTypeName(options.device.type(), /*lower_case=*/true);
  for (const auto& [name, axes] : kAxes) {
    const Group& group = groups.along(axes);
    if (group.size() == 1) continue;
    for (const plan::CollectiveKind kind : plan::kCollectiveKinds) {
      for (const int64_t bytes : options.sizes) {
        const int64_t values = std::max<int64_t>(1, bytes / 4 / group.size()) * group.size();
        CollectiveCall call(group, kind, values, options.device);
        report.times.push_back({.axis = name,
                                .kind = kind,
                                .ranks = group.size(),
                                .bytes = values * 4,
                                .seconds = median_seconds(call, world_group, options.seconds)});
      }
    }
  }
  report.fits = plan::fit_links(report.times);
  return report;
}

std::string collectives_text(const CollectivesReport& report) {
  if (report.times.empty())
    return "There is one rank: nothing is sent. Start several with welkin launch -n N -- bench --collectives\n";
  std::string text = cat("tensors on: ", report.device, "\n");
  for (const plan::LinkFit& fit : report.fits) {
    text += cat(fit.axis, " of ", fit.ranks, ", ", plan::collective_name(fit.kind), ": latency ", rounded(fit.latency_s * 1e6, 3),
                " us, ", rounded(fit.bytes_per_second * 1e-9, 3), " GB/s by the ring formula\n");
    for (const plan::TimedCollective& time : report.times) {
      if (time.axis != fit.axis || time.kind != fit.kind) continue;
      text +=
          cat("    ", size_text(time.bytes), ": ", rounded(time.seconds * 1e6, 3), " us (formula ",
              rounded(fit.seconds(time.bytes) * 1e6, 3), "), bus ", rounded(time.bus_bytes_per_second() * 1e-9, 3), " GB/s\n");
    }
  }
  return text;
}

void add_collectives_json(nlohmann::ordered_json& json, const CollectivesReport& report) {
  json["device"] = report.device;
  json["collectives"] = nlohmann::ordered_json::array();
  for (const plan::TimedCollective& time : report.times) {
    json["collectives"].push_back({{"axis", time.axis},
                                   {"collective", plan::collective_name(time.kind)},
                                   {"ranks", time.ranks},
                                   {"bytes", time.bytes},
                                   {"seconds", time.seconds},
                                   {"bus_bytes_per_s", time.bus_bytes_per_second()}});
  }
  json["calibration"] = nlohmann::ordered_json::array();
  for (const plan::LinkFit& fit : report.fits) {
    json["calibration"].push_back({{"axis", fit.axis},
                                   {"collective", plan::collective_name(fit.kind)},
                                   {"ranks", fit.ranks},
                                   {"latency_s", fit.latency_s},
                                   {"bandwidth_bytes_per_s", fit.bytes_per_second}});
  }
}

std::vector<plan::LinkFit> read_calibration(const std::string& path) {
  std::ifstream in(path);
  const auto refuse = [&](const std::string& reason) {
    throw DataError("bench", cat("this is no calibration of collectives: path=", path, ", reason=", reason),
                    "Write one with welkin launch -n N -- bench --collectives --json FILE");
  };
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!in.is_open() || json.is_discarded() || !json.is_object() || !json.contains("calibration")) refuse("not read");
  std::vector<plan::LinkFit> fits;
  try {
    for (const auto& row : json.at("calibration")) {
      fits.push_back({.axis = row.at("axis").get<std::string>(),
                      .kind = kind_named(row.at("collective").get<std::string>()),
                      .ranks = row.at("ranks").get<int64_t>(),
                      .latency_s = row.at("latency_s").get<double>(),
                      .bytes_per_second = row.at("bandwidth_bytes_per_s").get<double>()});
    }
  } catch (const nlohmann::json::exception& error) {
    refuse(error.what());
  }
  return fits;
}

}  // namespace welkin::bench
