// SPDX-License-Identifier: Apache-2.0
#include "plan/link_model.h"

#include <algorithm>
#include <cmath>

namespace welkin::plan {
namespace {

// Least squares of (a x + b y - 1) over rows (x, y) divided by the measured time, so that small messages count as large ones.
struct RelativeLeastSquares {
  double xx = 0, xy = 0, yy = 0, x = 0, y = 0;

  void add(double row_x, double row_y) {
    xx += row_x * row_x;
    xy += row_x * row_y;
    yy += row_y * row_y;
    x += row_x;
    y += row_y;
  }
  // Both results are at least 0.
  std::pair<double, double> solve() const {
    const double determinant = xx * yy - xy * xy;
    const double a = determinant > 0 ? (x * yy - y * xy) / determinant : 0;
    const double b = determinant > 0 ? (y * xx - x * xy) / determinant : y / std::max(yy, 1e-300);
    if (a < 0) return {0, y / yy};
    if (b < 0) return {x / xx, 0};
    return {a, b};
  }
};

}  // namespace

const char* collective_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return "all_reduce";
    case CollectiveKind::AllGather:
      return "all_gather";
    case CollectiveKind::ReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::AllToAll:
      return "all_to_all";
    case CollectiveKind::Broadcast:
      return "broadcast";
    default:
      return "send_receive";
  }
}

std::optional<CollectiveKind> collective_named(const std::string& name) {
  for (const CollectiveKind kind : kCollectiveKinds) {
    if (name == collective_name(kind)) return kind;
  }
  return {};
}

double ring_messages(CollectiveKind kind, int64_t ranks) {
  const auto turns = static_cast<double>(ranks - 1);
  if (kind == CollectiveKind::AllReduce) return 2 * turns;
  if (kind == CollectiveKind::SendReceive) return 1;
  if (kind == CollectiveKind::Broadcast) return std::ceil(std::log2(static_cast<double>(ranks)));
  return turns;
}

double bus_factor(CollectiveKind kind, int64_t ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  if (kind == CollectiveKind::AllReduce) return 2 * share;
  if (kind == CollectiveKind::SendReceive || kind == CollectiveKind::Broadcast) return 1;
  return share;
}

double LinkFit::seconds(int64_t bytes, int64_t over_ranks) const {
  if (over_ranks < 2) return 0;
  const double sent = static_cast<double>(bytes) * bus_factor(kind, over_ranks);
  return ring_messages(kind, over_ranks) * latency_s + (bytes_per_second > 0 ? sent / bytes_per_second : 0);
}

std::vector<LinkFit> fit_links(const std::vector<TimedCollective>& times) {
  std::vector<LinkFit> fits;
  std::vector<RelativeLeastSquares> sums;
  for (const TimedCollective& time : times) {
    auto same = std::ranges::find_if(fits, [&](const LinkFit& fit) { return fit.axis == time.axis && fit.kind == time.kind; });
    if (same == fits.end()) {
      fits.push_back({.axis = time.axis, .kind = time.kind, .ranks = time.ranks});
      sums.emplace_back();
      same = fits.end() - 1;
    }
    sums[static_cast<size_t>(same - fits.begin())].add(
        ring_messages(time.kind, time.ranks) / time.seconds,
        static_cast<double>(time.bytes) * bus_factor(time.kind, time.ranks) / time.seconds);
  }
  for (size_t i = 0; i < fits.size(); ++i) {
    const auto [latency, inverse_bandwidth] = sums[i].solve();
    fits[i].latency_s = latency;
    fits[i].bytes_per_second = inverse_bandwidth > 0 ? 1 / inverse_bandwidth : 0;
  }
  return fits;
}

}  // namespace welkin::plan
