// SPDX-License-Identifier: Apache-2.0
// The adapter to c10d::Reducer. Its interface is not stable, so only this file uses it.
#include "parallel/shard/data_parallel.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "parallel/c10d/c10d_group.h"
#include "parallel/c10d/c10d_traced_group.h"
#include "parallel/comm/collective_monitor.h"

namespace welkin::parallel {
namespace {

using ProcessGroupPtr = c10::intrusive_ptr<c10d::ProcessGroup>;

constexpr int64_t kReducerMib = int64_t{1} << 20;

// Sends a bucket as a narrower type. It divides first, so that the sum stays in the type's range.
class NarrowHook : public c10d::CppCommHookInterface<ProcessGroupPtr> {
 public:
  NarrowHook(ProcessGroupPtr group, at::ScalarType dtype)
      : c10d::CppCommHookInterface<ProcessGroupPtr>(std::move(group)), dtype_(dtype) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const at::Tensor& buffer = bucket.getBuffer();
    std::vector<at::Tensor> narrow{(buffer / state_->getSize()).to(dtype_)};
    auto future = state_->allreduce(narrow)->getFuture();
    return future->then(
        [buffer, narrow](c10::ivalue::Future& done) {
          if (done.hasError()) std::rethrow_exception(done.exception_ptr());
          buffer.copy_(narrow[0]);
          return c10::IValue(buffer);
        },
        c10::TensorType::get());
  }

 private:
  at::ScalarType dtype_;
};

// Rows of the table; a frozen parameter has no gradient to exchange.
std::vector<size_t> trained_rows(const ParamTable& table) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < table.rows().size(); ++i) {
    if (table.rows()[i].local.requires_grad()) rows.push_back(i);
  }
  return rows;
}

// The Reducer numbers the trained parameters from 0.
std::vector<std::vector<size_t>> reducer_buckets(const std::vector<Bucket>& buckets, const std::vector<size_t>& trained) {
  std::vector<std::vector<size_t>> numbered;
  for (const Bucket& bucket : buckets) {
    numbered.emplace_back();
    for (const size_t row : bucket.parameters) {
      numbered.back().push_back(static_cast<size_t>(std::lower_bound(trained.begin(), trained.end(), row) - trained.begin()));
    }
  }
  return numbered;
}

// True if the network failed rather than the computation. c10d has no error type for network failures when Gloo throws.
bool is_failed_exchange(const std::string& what) {
  for (const char* word : {"gloo", "Gloo", "Connection closed", "Timed out", "timed out", "NCCL", "Socket", "socket"}) {
    if (what.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

struct DataParallel::Impl {
  Impl(const ParamTable& all, const Group& replicas, const DataParallelOptions& how)
      : table(all), group(replicas), options(how), planned(plan_buckets(all, how.bucket_cap_mb)) {}

  bool active() const { return group.size() > 1 && options.exchange; }
  void make_reducer();
  void run_backward(const at::Tensor& loss);

  const ParamTable& table;
  Group group;
  DataParallelOptions options;
  std::vector<Bucket> planned;
  c10::intrusive_ptr<TracedProcessGroup> watched;  // null without listeners
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;  // the Reducer keeps a weak pointer to it
  bool is_first_pass = true;
};

// Called in the first step, whose forward pass has made the nodes that accumulate gradients. A node stays on the stream on
// which it was made, and the Reducer keeps it. A recording of steps (ops/device/device_graph.h) may not leave its own stream.
void DataParallel::Impl::make_reducer() {
  ProcessGroupPtr process_group = process_group_of(group);
  const observe::Tracer* tracer = group.monitor().services().tracer;
  if (tracer != nullptr && tracer->active() && !table.rows().front().local.is_cuda()) {
    watched = c10::make_intrusive<TracedProcessGroup>(process_group, group.name());
    process_group = watched;
  }
  const std::vector<size_t> trained = trained_rows(table);
  std::vector<at::Tensor> parameters;
  std::unordered_map<size_t, std::string> names;
  for (const size_t row : trained) {
    names[parameters.size()] = table.rows()[row].name;
    parameters.push_back(table.rows()[row].local);
  }
  const std::vector<bool> sparse(parameters.size(), false);
  const std::vector<std::vector<size_t>> assignment = reducer_buckets(planned, trained);
  const int64_t cap = options.bucket_cap_mb * kReducerMib;
  reducer = std::make_shared<c10d::Reducer>(parameters, assignment, process_group, sparse, cap, /*find_unused_parameters=*/false,
                                            /*gradient_as_bucket_view=*/true, names, kReducerMib,
                                            /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
                                            std::vector<int64_t>{});
  logger = std::make_shared<c10d::Logger>(reducer);
  reducer->set_logger(logger);
  logger->set_construction_data_and_log("model", {}, -1, /*broadcast_buffers=*/false, /*has_sync_bn=*/false,
                                        options.static_graph);
  if (options.static_graph) {
    reducer->set_static_graph();
    logger->set_static_graph();
  }
  if (options.comm_dtype == GradientDtype::Same) return;
  const auto dtype = options.comm_dtype == GradientDtype::Bf16 ? at::kBFloat16 : at::kHalf;
  reducer->register_comm_hook(std::make_unique<NarrowHook>(process_group, dtype));
}

void DataParallel::Impl::run_backward(const at::Tensor& loss) {
  if (!reducer) make_reducer();
  reducer->prepare_for_forward();
  reducer->prepare_for_backward({});
  if (options.static_graph && is_first_pass) {
    // The first pass only records how often each parameter is used. Without this its gradients would silently stay local.
    loss.register_hook([reducer = reducer](const at::Tensor& gradient) {
      torch::autograd::Engine::get_default_engine().queue_callback([reducer] { reducer->delay_all_reduce(); });
      return gradient;
    });
  }
  is_first_pass = false;
  if (watched) watched->forget();
  loss.backward();
  if (const observe::Tracer* tracer = group.monitor().services().tracer; watched && tracer != nullptr) watched->show(*tracer);
}

DataParallel::DataParallel(const ParamTable& table, const Group& group, const DataParallelOptions& options)
    : impl_(std::make_unique<Impl>(table, group, options)) {
  if (impl_->active()) spread_weights(table, group);
}

DataParallel::~DataParallel() = default;

void DataParallel::backward(const at::Tensor& loss, bool is_last) {
  Impl& self = *impl_;
  if (!is_last || !self.active()) return loss.backward();
  CollectiveMonitor& monitor = self.group.monitor();
  const int64_t ticket =
      monitor.begin("gradient exchange", cat(self.planned.size(), " buckets"), bytes_per_step(), loss.is_cuda());
  try {
    self.run_backward(loss);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (is_failed_exchange(error.what())) monitor.fail(ticket, error.what());
    throw;
  }
  monitor.end(ticket);
}

void DataParallel::clear_gradients() {
  const bool stay = impl_->active() && impl_->options.sum_in_buckets;
  for (const ParamRow& row : impl_->table.rows()) {
    if (stay && row.gradient().defined()) {
      row.local.mutable_grad().zero_();
    } else {
      row.local.mutable_grad() = at::Tensor();
    }
  }
  // Reorders the buckets once, after the first step, by the arrival of the gradients. No gradient is in flight here.
  if (impl_->reducer && impl_->reducer->should_rebuild_buckets()) impl_->reducer->rebuild_buckets();
}

std::vector<Bucket> DataParallel::buckets() const {
  if (!impl_->reducer) return impl_->planned;
  std::vector<Bucket> now;
  for (const c10d::GradBucket& bucket : impl_->reducer->get_grad_buckets()) {
    Bucket one{.parameters = {}, .bytes = static_cast<int64_t>(bucket.getBuffer().nbytes())};
    for (const at::Tensor& parameter : bucket.getParameters()) {
      const auto& rows = impl_->table.rows();
      const auto row = std::find_if(rows.begin(), rows.end(), [&](const ParamRow& r) { return r.local.is_same(parameter); });
      one.parameters.push_back(static_cast<size_t>(row - rows.begin()));
    }
    now.push_back(std::move(one));
  }
  return now;
}

int64_t DataParallel::bytes_per_step() const {
  if (!impl_->active()) return 0;
  int64_t bytes = 0;
  for (const Bucket& bucket : impl_->planned) bytes += bucket.bytes;
  return impl_->options.comm_dtype == GradientDtype::Same ? bytes : bytes / 2;
}

}  // namespace welkin::parallel
