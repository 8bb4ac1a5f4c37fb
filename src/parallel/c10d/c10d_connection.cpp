// SPDX-License-Identifier: Apache-2.0
// The one adapter to c10d: its C++ interface drifts between releases, so nothing else names it (the Reducer's adapter takes the
// process group from c10d_group.h).
#include <ATen/ops/empty.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "ops/device/device_ops.h"
#include "parallel/c10d/c10d_group.h"
#include "parallel/c10d/c10d_host_backend.h"
#include "parallel/c10d/c10d_link_backend.h"
#include "parallel/c10d/c10d_shared_gloo.h"
#include "parallel/c10d/c10d_store.h"
#include "parallel/comm/connection.h"
#include "parallel/comm/watchdog.h"

namespace welkin::parallel {
namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;
using GlooDevice = decltype(c10d::ProcessGroupGloo::Options::devices)::value_type;

class C10dKeyValueStore : public KeyValueStore {
 public:
  explicit C10dKeyValueStore(StorePtr store) : store_(std::move(store)) {}

  void set(const std::string& key, const std::string& text) override { store_->set(key, text); }
  void set_if_absent(const std::string& key, const std::string& text) override {
    store_->compareSet(key, {}, std::vector<uint8_t>(text.begin(), text.end()));
  }
  std::optional<std::string> read(const std::string& key) override {
    if (!store_->check({key})) return std::nullopt;
    const std::vector<uint8_t> bytes = store_->get(key);
    return std::string(bytes.begin(), bytes.end());
  }

 private:
  StorePtr store_;
};

class C10dConnection : public Connection {
 public:
  C10dConnection(const ConnectOptions& options, OpenStore opened)
      : options_(options), opened_(std::move(opened)), store_(opened_.store) {
    services_->rank = options.rank;
    services_->deadline = options.deadline;
    services_->kv_store = std::make_shared<C10dKeyValueStore>(c10::make_intrusive<c10d::PrefixStore>("notice", store_->clone()));
    const bool marks_calls = options.with_gpu && ops::device_ops().make_stream_marks != nullptr;
    services_->recorder =
        std::make_shared<FlightRecorder>(marks_calls ? ops::device_ops().make_stream_marks(FlightRecorder::kCapacity) : nullptr);
    services_->is_over = options.is_over;
    start_watch();
  }

  Group make_group(const std::string& name, GroupMembers members) override;
  int64_t rank() const override { return options_.rank; }
  int64_t world_size() const override { return options_.world_size; }
  KeyValueStore& kv_store() override { return *services_->kv_store; }
  FlightRecorder& recorder() override { return *services_->recorder; }
  int64_t strangers() const override { return opened_.server ? opened_.server->strangers() : 0; }
  const std::string& carrier() const override { return carrier_; }
  void trace(const observe::Tracer* tracer) override { services_->tracer = tracer; }
  void close() override;

 private:
  void start_watch();
  GlooDevice device_of_group();

  ConnectOptions options_;
  OpenStore opened_;
  StorePtr store_;
  std::shared_ptr<CallServices> services_ = std::make_shared<CallServices>();
  GlooDevice device_;                          // of all groups; null before the first, and over several hosts
  std::string carrier_;                        // of the first group
  std::map<std::string, int64_t> times_made_;  // by members: a second group of the same has another key
  std::vector<std::weak_ptr<C10dCommunicator>> communicators_;
  std::unique_ptr<Watchdog> watch_;  // last: it uses the others
};

// Gloo ends its calls at their deadline, and each member then says what it knows. NCCL's own watchdog would end the process
// without a word about the others, so it gets more time than ours.
constexpr std::chrono::seconds kGrace{30};

// It asks seldom where many ranks share the store, or where the store is a file.
void C10dConnection::start_watch() {
  WatchdogOptions watch{.rank = options_.rank, .world_size = options_.world_size, .on_hang = options_.on_hang};
  watch.interval *= std::max<int64_t>(options_.file.empty() ? 1 : 5, options_.world_size / 64);
  watch.hang_after = 2 * options_.deadline + kGrace;
  watch.gpu_hang_after = options_.deadline + kGrace / 2;
  watch_ = std::make_unique<Watchdog>(
      std::make_shared<C10dKeyValueStore>(c10::make_intrusive<c10d::PrefixStore>("notice", store_->clone())), services_->recorder,
      std::move(watch));
}

// Gloo returns on a member as soon as its own sockets are connected. Were it to drop the group then, those who still connect
// would find a closed socket: nobody leaves before all have arrived.
void wait_for_members(c10d::Store& store, int size, std::chrono::milliseconds deadline) {
  if (store.add("arrived", 1) == size) store.set("complete", std::vector<uint8_t>{1});
  store.wait({"complete"}, deadline);
}

// Each member says that it makes the group before it waits for the others, so that those who do not can be named.
std::string here_key(int64_t place) { return cat("here/", place); }

std::vector<int64_t> missing_ranks(const StorePtr& store, const std::string& key, const GroupMembers& members) {
  const auto own_keys = c10::make_intrusive<c10d::PrefixStore>(key, store);
  std::vector<int64_t> missing;
  for (int64_t place = 0; place < members.size(); ++place) {
    if (!own_keys->check({here_key(place)})) missing.push_back(members.ranks[static_cast<size_t>(place)]);
  }
  return missing;
}

// Gloo's listening sockets take whoever tells the number of a connection. So each member shows every other one, on the connection
// that they will use, that it has the job's key.
void prove_members(const OpenStore& opened, c10d::Backend& backend, const std::string& group, const GroupMembers& members) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(JobKey));
  const auto size = static_cast<int64_t>(members.size());
  at::Tensor shown = at::empty({size, kBytes}, at::kByte);
  at::Tensor seen = at::empty({size, kBytes}, at::kByte);
  for (int64_t to = 0; to < size; ++to) {
    const JobKey proof = member_proof(opened.key, opened.job_nonce, group, members.place, to);
    std::copy(proof.begin(), proof.end(), shown.data_ptr<uint8_t>() + to * kBytes);
  }
  std::vector<int64_t> counts;
  backend.alltoall_base(seen, shown, counts, counts, {})->wait();
  for (int64_t from = 0; from < size; ++from) {
    JobKey proof{};
    std::copy_n(seen.data_ptr<uint8_t>() + from * kBytes, kBytes, proof.begin());
    if (is_equal(proof, member_proof(opened.key, opened.job_nonce, group, from, members.place))) continue;
    throw CommError(
        "parallel",
        cat("a connection of a group is not of this job: group=", group, ", rank=", members.ranks[static_cast<size_t>(from)]),
        "Every process of a job needs the same WELKIN_JOB_SECRET; else a stranger has taken this rank's place");
  }
}

// Says before the members arrive which GPU this one computes on. Two that name the same one share it.
void tell_own_gpu(c10d::Store& store) {
  if (store.add(cat("gpu ", ops::device_ops().gpu_name()), 1) > 1) store.set("gpu is shared", std::vector<uint8_t>{1});
}

// Threads that are started while it lives do not preempt others when they wake (sched(7), SCHED_BATCH). The thread of Gloo's
// device polls while a sender holds the lock of its connection. On the sender's core it would keep the core until the next tick:
// 4 ms for each message. `wants`: only where long calls go through shared memory. Over TCP each step of a ring would wait for
// such a thread until a tick, if all cores compute.
class PatientThreads {
 public:
  explicit PatientThreads(bool wants) : policy_(::sched_getscheduler(0)) {
    is_set_ = wants && policy_ == SCHED_OTHER && set(SCHED_BATCH);
  }
  ~PatientThreads() {
    if (is_set_) set(policy_);
  }
  PatientThreads(const PatientThreads&) = delete;
  PatientThreads& operator=(const PatientThreads&) = delete;

 private:
  static bool set(int policy) {
    const sched_param none{};
    return ::sched_setscheduler(0, policy, &none) == 0;
  }

  int policy_;
  bool is_set_ = false;
};

// A device has a thread, which wakes a hundred times a second. On one host long calls go through shared memory, so one device
// serves all groups. Over a network each group has its own: a thread moves the bytes of all its connections.
GlooDevice C10dConnection::device_of_group() {
  if (device_) return device_;
  const PatientThreads patient(options_.is_one_host);
  GlooDevice made = c10d::ProcessGroupGloo::createDeviceForHostname(options_.own_address);
  if (options_.is_one_host) device_ = made;
  return made;
}

// `carrier`: what carries its calls on the host, in words.
std::shared_ptr<C10dCommunicator> make_communicator(const ConnectOptions& options, const OpenStore& opened,
                                                    const GlooDevice& device, const std::string& key, const GroupMembers& members,
                                                    std::string& carrier) {
  const auto prefixed = c10::make_intrusive<c10d::PrefixStore>(key, opened.store);
  const int place = static_cast<int>(members.place);
  const int size = static_cast<int>(members.size());
  prefixed->set(here_key(place), std::vector<uint8_t>{1});
  const auto gloo = c10d::ProcessGroupGloo::Options::create(options.deadline);
  gloo->threads = 2;
  gloo->devices.push_back(device);
  if (options.with_gpu) tell_own_gpu(*prefixed);
  auto direct = c10::make_intrusive<SharedGloo>(prefixed, place, size, gloo);
  wait_for_members(*prefixed, size, options.deadline);
  prove_members(opened, *direct, key, members);
  carrier = "an emulated link";
  if (!options.link) {  // a link's timing is Gloo's
    const std::string why =
        direct->share_memory(options.shared_memory, {.deadline = options.deadline, .is_over = options.is_over});
    carrier = why.empty() ? "shared memory" : cat("TCP: ", why);
  }
  c10::intrusive_ptr<c10d::Backend> backend = std::move(direct);
  if (options.link) backend = c10::make_intrusive<LinkBackend>(std::move(backend), options.link);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(prefixed, place, size);
  group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, backend);
  C10dCommunicator::BackendPtr on_gpu;
  const auto make_on_gpu = [=, deadline = 2 * options.deadline + kGrace](const char* name) {
    const auto own_keys = c10::make_intrusive<c10d::PrefixStore>(name, prefixed);
    auto made = ops::device_ops().make_backend(own_keys, place, size, deadline);
    made->setGroupUid(cat(key, " ", name));
    return made;
  };
  const bool is_shared = options.with_gpu && prefixed->check({"gpu is shared"});
  if (is_shared) {  // NCCL takes one rank of a GPU
    group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::CUSTOM, c10::make_intrusive<HostBackend>(backend));
  } else if (options.with_gpu) {
    on_gpu = make_on_gpu("gpu");
    group->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, on_gpu);
  }
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  group->setGroupName(key);
  return std::make_shared<C10dCommunicator>(std::move(group), std::move(on_gpu), make_on_gpu, is_shared);
}

Group C10dConnection::make_group(const std::string& name, GroupMembers members) {
  if (members.size() == 1) return Group(name, std::move(members), nullptr, nullptr);
  const std::string text = cat(name, " [", join(members.ranks, ", "), "]");
  const std::string key = cat(text, " ", times_made_[text]++);
  try {
    std::string carrier;
    auto communicator = make_communicator(options_, opened_, device_of_group(), key, members, carrier);
    if (carrier_.empty()) carrier_ = std::move(carrier);
    communicators_.push_back(communicator);
    auto monitor = std::make_shared<CollectiveMonitor>(services_, text, members.ranks);
    return Group(name, std::move(members), std::move(communicator), std::move(monitor));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    std::string who;
    try {
      const std::vector<int64_t> missing = missing_ranks(store_, key, members);
      if (!missing.empty()) who = cat(", silent ranks=[", join(missing, ", "), "]");
    } catch (const std::exception&) {  // the store is gone too
    }
    throw CommError(
        "parallel",
        cat("the members of a group cannot connect: group=", text, who, ", own address=", options_.own_address,
            ", deadline_s=", std::chrono::duration<double>(options_.deadline).count(), ", reason=", reason_of(error.what())),
        "Look at the log of the ranks named; check that the others can reach this address");
  }
}

// Every rank says that it is done, and rank 0, which hosts the store, waits for all. NCCL's threads ask the store too, so they
// end before.
void C10dConnection::close() {
  watch_.reset();
  for (const auto& communicator : communicators_) {
    if (const auto alive = communicator.lock()) alive->end_on_gpu();
  }
  store_->add("closed", 1);
  if (options_.rank != 0) return;
  const auto until = std::chrono::steady_clock::now() + options_.deadline;
  while (store_->add("closed", 0) < options_.world_size && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Gloo writes to sockets without MSG_NOSIGNAL: a peer that is gone would end this process in place of its call. A handler that
// somebody has set stays.
void ignore_broken_pipes() {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;  // NOLINT: the signal interface
  action.sa_handler = SIG_IGN;                                                            // NOLINT: the signal interface
  sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace

std::unique_ptr<Connection> Connection::open(const ConnectOptions& options) {
  ignore_broken_pipes();
  if (options.with_gpu && ops::device_ops().make_backend == nullptr) {
    throw CommError(
        "parallel",
        cat("ranks with GPUs need NCCL, which this build lacks: rank=", options.rank, ", world size=", options.world_size),
        "Build libwelkin_cuda.so where nccl.h is found (./quickstart.sh --cuda), or take --device cpu");
  }
  try {
    return std::make_unique<C10dConnection>(options, open_store(options));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw CommError("parallel",
                    cat("the rendezvous failed: rank=", options.rank, ", world size=", options.world_size, ", ",
                        options.file.empty() ? cat("host=", options.host, ", port=", options.port) : cat("file=", options.file),
                        ", reason=", reason_of(error.what())),
                    "Check that rank 0 runs there, that the address is reachable, and that the port is free");
  }
}

}  // namespace welkin::parallel
