// SPDX-License-Identifier: Apache-2.0
#include "launch/ranks.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "launch/host_list.h"

namespace welkin::launch {
namespace {

// The variables with one launcher's numbers. If there are several names, the first that is set counts.
struct Family {
  const char* launcher;
  std::vector<const char*> rank, size, local_rank, local_size, node, num_nodes;
};

struct Number {
  int64_t value = 0;
  const char* variable = nullptr;
};

const std::vector<Family>& families() {
  static const std::vector<Family> rows = {
      {.launcher = "the environment",
       .rank = {"WORLD_RANK", "RANK"},
       .size = {"WORLD_SIZE"},
       .local_rank = {"LOCAL_RANK"},
       .local_size = {"LOCAL_WORLD_SIZE"},
       .node = {"GROUP_RANK"},
       .num_nodes = {"GROUP_WORLD_SIZE"}},
      {.launcher = "Flux",
       .rank = {"FLUX_TASK_RANK"},
       .size = {"FLUX_JOB_SIZE"},
       .local_rank = {"FLUX_TASK_LOCAL_ID"},
       .local_size = {},
       .node = {},
       .num_nodes = {"FLUX_JOB_NNODES"}},
      {.launcher = "jsrun",
       .rank = {"JSM_NAMESPACE_RANK"},
       .size = {"JSM_NAMESPACE_SIZE"},
       .local_rank = {"JSM_NAMESPACE_LOCAL_RANK"},
       .local_size = {"JSM_NAMESPACE_LOCAL_SIZE"},
       .node = {},
       .num_nodes = {}},
      {.launcher = "Open MPI",
       .rank = {"OMPI_COMM_WORLD_RANK"},
       .size = {"OMPI_COMM_WORLD_SIZE"},
       .local_rank = {"OMPI_COMM_WORLD_LOCAL_RANK"},
       .local_size = {"OMPI_COMM_WORLD_LOCAL_SIZE"},
       .node = {},
       .num_nodes = {}},
      {.launcher = "MVAPICH",
       .rank = {"MV2_COMM_WORLD_RANK"},
       .size = {"MV2_COMM_WORLD_SIZE"},
       .local_rank = {"MV2_COMM_WORLD_LOCAL_RANK"},
       .local_size = {"MV2_COMM_WORLD_LOCAL_SIZE"},
       .node = {},
       .num_nodes = {}},
      {.launcher = "MPICH",
       .rank = {"PMI_RANK"},
       .size = {"PMI_SIZE"},
       .local_rank = {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
       .local_size = {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
       .node = {},
       .num_nodes = {}},
      {.launcher = "PMIx",
       .rank = {"PMIX_RANK"},
       .size = {"PMIX_SIZE"},
       .local_rank = {"PMIX_LOCAL_RANK"},
       .local_size = {"PMIX_LOCAL_SIZE"},
       .node = {},
       .num_nodes = {}},
      {.launcher = "Slurm",
       .rank = {"SLURM_PROCID"},
       .size = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
       .local_rank = {"SLURM_LOCALID"},
       .local_size = {},
       .node = {"SLURM_NODEID"},
       .num_nodes = {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}},
  };
  return rows;
}

class Reader {
 public:
  explicit Reader(const ReadVariable& read) : read_(read) {}

  // An empty variable counts as absent.
  const char* text(const char* name) const {
    const char* value = read_(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
  }

  std::optional<Number> number(const std::vector<const char*>& names) const {
    for (const char* name : names) {
      const char* value = text(name);
      if (value == nullptr) continue;
      const std::string_view digits = value;
      Number number{.value = 0, .variable = name};
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number.value);
      if (error == std::errc() && end == digits.data() + digits.size() && number.value >= 0) return number;
      throw ConfigError("launch", cat("not a number: ", name, "=", digits), cat("Unset ", name, ", or give it a whole number"));
    }
    return {};
  }

 private:
  const ReadVariable& read_;
};

// sbatch sets Slurm's numbers for the whole script too: only a step of srun counts, and the script's own step is none.
bool is_in_slurm_step(const Reader& reader) {
  const char* step = reader.text("SLURM_STEP_ID");
  if (step == nullptr) step = reader.text("SLURM_STEPID");
  constexpr std::string_view kScript = "4294967291", kExternal = "4294967292", kInteractive = "4294967290";
  return step != nullptr && step != kScript && step != kExternal && step != kInteractive;
}

struct Found {
  const Family* family = nullptr;
  Number rank, size;
};

[[noreturn]] void refuse_missing(const char* present, int64_t value, const char* absent) {
  throw ConfigError("launch",
                    cat("rank or world size of this process is missing: ", present, "=", value, ", ", absent, " is not set"),
                    cat("Set both, or unset ", present, "; welkin launch, srun, mpirun and torchrun set what is needed"));
}

// Nullopt when the family is absent, or gives one process only.
std::optional<Found> look_for(const Reader& reader, const Family& family) {
  const auto size = reader.number(family.size);
  const auto rank = reader.number(family.rank);
  if (!size && !rank) return {};
  if (!size) {
    // Some launchers of PMIx give the rank alone; another family tells the size then.
    if (family.rank.front() == std::string_view("PMIX_RANK")) return {};
    refuse_missing(rank->variable, rank->value, family.size.front());
  }
  if (!rank && size->value == 1) return {};
  if (!rank) refuse_missing(size->variable, size->value, family.rank.back());
  if (rank->value >= size->value) {
    throw ConfigError("launch",
                      cat("the rank is not below the number of processes: ", rank->variable, "=", rank->value, ", ",
                          size->variable, "=", size->value),
                      "Ranks count from 0: correct one of them");
  }
  return Found{&family, *rank, *size};
}

void check_agreement(const Found& a, const Found& b) {
  if (a.rank.value == b.rank.value && a.size.value == b.size.value) return;
  throw ConfigError(
      "launch",
      cat("two launchers contradict each other: ", a.rank.variable, "=", a.rank.value, ", ", a.size.variable, "=", a.size.value,
          "; ", b.rank.variable, "=", b.rank.value, ", ", b.size.variable, "=", b.size.value),
      cat("Unset the variables that are left over from elsewhere (", a.size.variable, " or ", b.size.variable, ")"));
}

// The environment's own numbers must agree with the launcher below them. Among launchers the inner one counts, since an mpirun
// or a torchrun inside srun has numbers of its own.
std::optional<Found> choose(const Reader& reader, bool starts_own_workers) {
  std::optional<Found> chosen;
  for (const Family& family : families()) {
    if (family.launcher == std::string_view("Slurm") && !is_in_slurm_step(reader)) continue;
    const auto found = look_for(reader, family);
    if (!found) continue;
    if (!chosen) {
      chosen = found;
      if (starts_own_workers || chosen->family != &families().front()) return chosen;
      continue;
    }
    check_agreement(*chosen, *found);
    return Found{found->family, chosen->rank, chosen->size};
  }
  return chosen;
}

std::string slurm_first_host(const Reader& reader) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (const char* list = reader.text(name)) return expand_host_list(list, name).front();
  }
  return {};
}

// Local size from "4(x2),3", where Slurm gives no number.
std::optional<int64_t> slurm_local_size(const Reader& reader, int64_t node) {
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    const char* counts = reader.text(name);
    if (counts == nullptr) continue;
    const auto tasks = expand_task_counts(counts, name);
    if (node < static_cast<int64_t>(tasks.size())) return tasks[static_cast<size_t>(node)];
  }
  return {};
}

void check_local(const RankInfo& place, const char* variable) {
  if (place.local_rank < place.local_size && place.local_size <= place.world_size && place.node < place.num_nodes) return;
  throw ConfigError("launch",
                    cat("the place within the node is impossible: ", variable, "=", place.local_rank, ", processes of the node=",
                        place.local_size, ", of the run=", place.world_size, ", node=", place.node, " of ", place.num_nodes),
                    "Unset what is left over from another launcher");
}

// Without variables about nodes, all ranks are on this one, unless an address contradicts.
void place_on_nodes(const Reader& reader, const Found& found, RankInfo& place) {
  const Family& family = *found.family;
  const bool is_slurm = family.launcher == std::string_view("Slurm");
  const auto node = reader.number(family.node);
  const auto num_nodes = reader.number(family.num_nodes);
  const auto local_rank = reader.number(families().front().local_rank);
  const auto own_local_rank = reader.number(family.local_rank);
  auto local_size = reader.number(family.local_size);
  if (node) place.node = node->value;
  if (num_nodes) place.num_nodes = std::max<int64_t>(1, num_nodes->value);
  if (is_slurm && !local_size) {
    if (const auto tasks = slurm_local_size(reader, place.node)) local_size = Number{*tasks, "SLURM_STEP_TASKS_PER_NODE"};
  }
  const int64_t even = std::max<int64_t>(1, place.world_size / place.num_nodes);
  place.local_size = local_size ? local_size->value : even;
  if (place.local_size == 0) {
    throw ConfigError("launch", cat("a node without processes is impossible: ", local_size->variable, "=0"),
                      "Unset what is left over from another launcher");
  }
  if (!num_nodes && local_size && local_size->value > 0) {
    place.num_nodes = (place.world_size + place.local_size - 1) / place.local_size;
  }
  const auto rank_here = own_local_rank ? own_local_rank : local_rank;
  place.local_rank = rank_here ? rank_here->value : place.rank % place.local_size;
  if (!node) place.node = std::min(place.rank / place.local_size, place.num_nodes - 1);
  check_local(place, rank_here ? rank_here->variable : found.rank.variable);
}

void find_address(const Reader& reader, RankInfo& place) {
  for (const char* name : {"MASTER_ADDRESS", "MASTER_ADDR"}) {
    if (const char* address = reader.text(name); address != nullptr && place.master_address.empty()) {
      place.master_address = address;
    }
  }
  if (const auto port = reader.number({"MASTER_PORT"})) {
    if (port->value > 65535) {
      throw ConfigError("launch", cat("not a port: MASTER_PORT=", port->value), "Choose one from 1024 to 65535");
    }
    place.master_port = port->value;
  }
  if (place.world_size == 1 || !place.master_address.empty()) return;
  if (place.num_nodes == 1) {
    place.master_address = "127.0.0.1";
  } else if (place.launcher == "Slurm") {
    place.master_address = slurm_first_host(reader);
  }
  if (!place.master_address.empty()) return;
  throw ConfigError("launch",
                    cat("the address of rank 0 is not given: MASTER_ADDR is not set, processes=", place.world_size,
                        ", nodes=", place.num_nodes, ", launcher=", place.launcher),
                    "Set MASTER_ADDR to the first node's name on every process (mpirun -x MASTER_ADDR), and MASTER_PORT");
}

// The default port: the processes of a job agree on it, and two jobs on a node hardly share it.
int64_t port_of_job(const Reader& reader) {
  constexpr int64_t kFirst = 29500, kPorts = 8000;
  uint64_t mixed = 0;
  for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "FLUX_JOB_ID", "LSB_JOBID", "PMIX_NAMESPACE", "PMI_JOBID"}) {
    const char* text = reader.text(name);
    for (; text != nullptr && *text != '\0'; ++text) mixed = mixed * 131 + static_cast<unsigned char>(*text);
  }
  return kFirst + static_cast<int64_t>(mixed % kPorts);
}

}  // namespace

RankInfo find_ranks(const ReadVariable& read) {
  const Reader reader(read);
  RankInfo place;
  const bool is_ours = reader.text("WELKIN_LAUNCH") != nullptr;
  const bool is_torchrun = reader.text("TORCHELASTIC_RUN_ID") != nullptr;
  const auto found = choose(reader, is_ours || is_torchrun);
  if (const char* file = reader.text("WIREUP_FILE_PATH")) place.store_file = file;
  if (!found) return place;
  place.rank = found->rank.value;
  place.world_size = found->size.value;
  place.launcher = is_ours ? "welkin launch" : is_torchrun ? "torchrun" : found->family->launcher;
  place_on_nodes(reader, *found, place);
  find_address(reader, place);
  if (place.master_port == 0 && place.world_size > 1) place.master_port = port_of_job(reader);
  if (const auto descriptor = reader.number({"WELKIN_LISTEN_FD"}); is_ours && descriptor)
    place.listen_descriptor = descriptor->value;
  if (const char* limits = reader.text("WELKIN_ELASTIC"); is_ours && limits != nullptr) {
    place.elastic = limits;
    if (const char* id = reader.text("WELKIN_ELASTIC_ID")) place.elastic_id = id;
    place.store_is_launchers = true;
  }
  if (const auto attempt = reader.number({"TORCHELASTIC_RESTART_COUNT"})) place.attempt = attempt->value;
  const char* agent = reader.text("TORCHELASTIC_USE_AGENT_STORE");
  place.store_is_served = is_torchrun && agent != nullptr && std::string_view(agent) == "True";
  return place;
}

std::string describe(const RankInfo& place) {
  if (place.launcher.empty()) return "one process";
  return cat("rank ", place.rank, " of ", place.world_size, ", local rank ", place.local_rank, " of ", place.local_size,
             ", node ", place.node, " of ", place.num_nodes, ", from ", place.launcher);
}

}  // namespace welkin::launch
