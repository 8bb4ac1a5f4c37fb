// SPDX-License-Identifier: Apache-2.0
#include "parallel/shard/gradient_exchange.h"

#include <ATen/core/grad_mode.h>

#include <iomanip>
#include <sstream>
#include <utility>

#include "parallel/comm/collectives.h"

namespace welkin::parallel {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kFirstBucketBytes = kMib;

}  // namespace

std::vector<Bucket> plan_buckets(const ParamTable& table, int64_t bucket_cap_mb) {
  std::vector<Bucket> buckets;
  int64_t limit = kFirstBucketBytes;
  Bucket open;
  for (size_t i = table.rows().size(); i-- > 0;) {
    const at::Tensor& local = table.rows()[i].local;
    if (!local.requires_grad()) continue;  // a frozen parameter has no gradient to exchange
    open.parameters.push_back(i);
    open.bytes += static_cast<int64_t>(local.nbytes());
    if (open.bytes < limit) continue;
    buckets.push_back(std::exchange(open, {}));
    limit = bucket_cap_mb * kMib;
  }
  if (!open.parameters.empty()) buckets.push_back(std::move(open));
  return buckets;
}

std::string describe(const std::vector<Bucket>& buckets) {
  std::ostringstream out;
  out << buckets.size() << (buckets.size() == 1 ? " bucket:" : " buckets:") << std::fixed << std::setprecision(1);
  for (const Bucket& bucket : buckets) out << " " << static_cast<double>(bucket.bytes) / static_cast<double>(kMib);
  out << " MiB";
  return out.str();
}

void spread_weights(const ParamTable& table, const Group& group) {
  const at::NoGradGuard no_grad;
  for (const ParamRow& row : table.rows()) {
    const at::Tensor packed = row.local.detach().contiguous();
    broadcast(group, packed, 0);
    row.local.detach().copy_(packed);
  }
}

}  // namespace welkin::parallel
