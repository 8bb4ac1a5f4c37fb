// SPDX-License-Identifier: Apache-2.0
#include "launch/launch_command.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "launch/affinity.h"
#include "launch/batch/job_script.h"
#include "launch/batch/shell_word.h"
#include "launch/elastic/agent.h"
#include "launch/job_secret.h"
#include "launch/sockets.h"

namespace welkin::launch {
namespace {

constexpr std::string_view kUsage =
    "usage: welkin [OPTIONS] launch -n N [--nnodes M --node_rank R --rdzv HOST:PORT]\n"
    "       [--bind off|auto|LIST] -- VERB [ARGUMENTS]\n"
    "\n"
    "Starts N processes of a verb on this node. Their lines are marked with the rank, SIGINT and SIGTERM\n"
    "are passed on (train then saves one checkpoint), and when one process fails all are stopped, and the\n"
    "one that failed first is named.\n"
    "\n";

constexpr std::array kOptions{
    LaunchOption{"--nproc", "-n", "N", "processes on this node"},
    LaunchOption{"--nnodes", "", "M", "nodes; the command runs once on each (default 1)"},
    LaunchOption{"--node_rank", "", "R", "index of this node, from 0"},
    LaunchOption{"--rdzv", "", "HOST:PORT", "rendezvous address: a name of node 0 and a free port there"},
    LaunchOption{"--bind", "", "MODE",
                 "cores of each process: auto (a share each, NUMA node by NUMA node), off, or 0-3:4-7 per local rank"},
    LaunchOption{"--no-prefix", "", "", "do not mark lines with [rank]"},
    LaunchOption{"--grace", "", "SECONDS", "time for other processes to report after one has failed (default 5)"},
    LaunchOption{"--elastic", "", "MIN:MAX",
                 "continue with MIN to MAX ranks in all when some are lost, and restart the lost ones (train)"},
    LaunchOption{
        "--max_restarts", "", "N",
        "restarts of lost processes of this node, in all (train; default 3 with --elastic, else 0); without --elastic the "
        "run goes on when all ranks are there again"},
    LaunchOption{"--sbatch", "", "", "print a Slurm job script for N processes on each of M nodes; `| sbatch` submits it"},
    LaunchOption{"--script", "", "SYSTEM",
                 "print a job script, as --sbatch, for flux (`| flux batch`), lsf (`| bsub`), pbs (`| qsub`) or slurm"},
    LaunchOption{"--batch", "", "KEY=VALUE",
                 "line of the script: account=m1234, time=02:00:00, reservation=..., image=... (may be repeated)"},
    LaunchOption{"--help", "-h", "", "print this text"},
};

constexpr std::string_view kForeignLaunchers =
    "\nA srun, mpirun, torchrun or flux run starts `welkin VERB` directly; no `launch` is needed there.\n";

constexpr int64_t kRestarts = 3;  // of an elastic job

constexpr size_t kHelpColumn = 24, kHelpWidth = 100;

std::string option_row(const LaunchOption& option) {
  std::string left = cat("  ", option.short_name, option.short_name.empty() ? "" : ", ", option.name, " ", option.metavar);
  left.resize(kHelpColumn, ' ');
  return cat(left, wrapped(option.help, kHelpWidth, kHelpColumn), "\n");
}

int64_t whole_number(const std::string& option, const std::string& text, int64_t least) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= 1 << 20) return value;
  throw ConfigError("launch", cat("not a number of the right size: ", option, "=", text, ", least=", least),
                    "Run welkin launch --help");
}

double seconds_of(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && std::isfinite(value) && value >= 0 && value < 1e6) return value;
  throw ConfigError("launch", cat("not a time: ", option, "=", text), "Give seconds");
}

// The value of an option: behind '=' or the next word.
class Words {
 public:
  explicit Words(const std::vector<std::string>& words) : words_(words) {}

  bool next() {
    if (at_ == words_.size()) return false;
    name_ = words_[at_++];
    value_.reset();
    if (const size_t equals = name_.find('='); name_.starts_with("--") && equals != std::string::npos) {
      value_ = name_.substr(equals + 1);
      name_.resize(equals);
    }
    return true;
  }
  const std::string& name() const { return name_; }
  std::string value() {
    if (value_) return *value_;
    if (at_ == words_.size()) {
      throw ConfigError("launch", cat("an option needs a value: option=", name_), "Run welkin launch --help");
    }
    return words_[at_++];
  }
  std::vector<std::string> rest() const { return {words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end()}; }
  void step_back() { --at_; }

 private:
  const std::vector<std::string>& words_;
  size_t at_ = 0;
  std::string name_;
  std::optional<std::string> value_;
};

void check_elastic(const LaunchArguments& arguments) {
  if (!arguments.elastic) return;
  const ElasticLimits& limits = *arguments.elastic;
  const int64_t started = arguments.num_local * arguments.num_nodes;
  if (started < limits.least) {
    throw ConfigError("launch",
                      cat("fewer processes are started than a round needs: n=", arguments.num_local,
                          ", nnodes=", arguments.num_nodes, ", elastic=", limits.least, ":", limits.most),
                      "Raise -n, or lower MIN");
  }
  const char* const option = arguments.restarts_alone ? "--max_restarts" : "--elastic";
  if (!arguments.verb.empty() && arguments.verb.front() != "train") {
    throw ConfigError("launch",
                      cat(arguments.restarts_alone ? "only train goes on after a restart" : "only train goes on with other ranks",
                          ": verb=", arguments.verb.front()),
                      cat("Leave ", option, " out"));
  }
  if (arguments.sbatch) {
    throw ConfigError(
        "launch",
        cat("a job script of --sbatch starts its ranks by srun, which does not support elastic rounds: ", option, ", --sbatch"),
        "Leave one of them out; the guide has a job script for elastic jobs (docs/guide/elastic.md)");
  }
}

// Restarts without limits of the number of ranks, as torchrun has them: a round needs all.
void need_all_ranks(LaunchArguments& arguments) {
  if (arguments.elastic || arguments.max_restarts.value_or(0) == 0 || arguments.num_local == 0) return;
  const int64_t all = arguments.num_local * arguments.num_nodes;
  arguments.elastic = ElasticLimits{.least = all, .most = all};
  arguments.restarts_alone = true;
}

void check(const LaunchArguments& arguments) {
  if (arguments.help) return;
  if (arguments.num_local == 0) {
    throw ConfigError("launch", "the number of processes is not given: -n is absent",
                      "Give -n N, for instance welkin launch -n 4 -- train ...");
  }
  check_elastic(arguments);
  if (arguments.verb.empty()) {
    throw ConfigError("launch", "nothing to start: no verb after --",
                      "For instance: welkin launch -n 4 -- train --yaml_config config/ViT.yaml");
  }
  if (arguments.node_rank >= arguments.num_nodes) {
    throw ConfigError("launch", cat("there is no such node: node_rank=", arguments.node_rank, ", nnodes=", arguments.num_nodes),
                      "Nodes count from 0");
  }
  if (!arguments.batch.empty() && !arguments.sbatch) {
    throw ConfigError("launch", cat("a line of a job script without --sbatch: batch=", arguments.batch.front()),
                      "Add --sbatch, or --script SYSTEM");
  }
  if (arguments.num_nodes > 1 && arguments.rendezvous.empty() && !arguments.sbatch) {
    throw ConfigError("launch", cat("no rendezvous address is given: nnodes=", arguments.num_nodes, ", rdzv is not given"),
                      "Give --rdzv HOST:PORT on every node: a name of node 0, and a free port there");
  }
}

struct Place {
  std::string host;
  int64_t port = 0;
};

Place place_of(const std::string& rendezvous) {
  if (rendezvous.empty()) return {"127.0.0.1", 0};
  const size_t colon = rendezvous.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw ConfigError("launch", cat("not HOST:PORT: rdzv=", rendezvous), "For instance --rdzv node001:29500");
  }
  std::string host = rendezvous.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);  // IPv6
  const int64_t port = whole_number("rdzv", rendezvous.substr(colon + 1), 1);
  if (port > 65535) throw ConfigError("launch", cat("not a port: rdzv=", rendezvous), "Choose one from 1024 to 65535");
  return {std::move(host), port};
}

// A wrong --bind is found here rather than once in every process.
void check_binding(const LaunchArguments& arguments) {
  const std::vector<int64_t> allowed = allowed_cpus();
  const CpuTopology topology = read_topology();
  for (int64_t local = 0; local < arguments.num_local; ++local) {
    choose_binding({.mode = arguments.bind, .local_rank = local, .local_size = arguments.num_local, .shares_mask = true},
                   topology, allowed, static_cast<int64_t>(allowed.size()));
  }
}

BatchJob batch_job(const LaunchArguments& arguments, std::vector<std::string> command) {
  BatchJob job;
  job.nodes = arguments.num_nodes;
  job.tasks_per_node = arguments.num_local;
  job.bind = arguments.bind;
  job.command = std::move(command);
  for (const std::string& text : arguments.batch) job.directives.push_back(parse_directive(text));
  return job;
}

// Runs an elastic job. The launcher's board outlives the ranks, so it, and not rank 0, has the socket.
int run_rounds(const LaunchArguments& arguments, WorkerPlan plan, const MakeBoard& make_board) {
  const ReadVariable read = [](const char* name) { return std::getenv(name); };
  std::string secret = job_secret(read);
  plan.environment.emplace_back(kJobStarted, std::to_string(std::time(nullptr)));
  if (secret.empty() && plan.num_nodes == 1) plan.environment.emplace_back("WELKIN_JOB_SECRET", secret = random_token());
  const BoardPlace place{.host = plan.master_address,
                         .port = plan.master_port,
                         .listener = std::exchange(plan.listener, -1),
                         .secret = secret,
                         .num_ranks = plan.num_local * plan.num_nodes};
  ElasticPlan elastic{.command = plan.command,
                      .num_local = plan.num_local,
                      .num_nodes = plan.num_nodes,
                      .node = plan.node,
                      .limits = *arguments.elastic,
                      .max_restarts = arguments.max_restarts.value_or(kRestarts),
                      .grace = plan.grace,
                      .prefix = plan.prefix,
                      .environment = [&plan](int64_t local) { return worker_environment(plan, local); }};
  return run_elastic(elastic, [&] { return make_board(place); });
}

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (const LaunchOption& option : kOptions) names.emplace_back(option.name);
  return names;
}

}  // namespace

LaunchArguments parse_launch(const std::vector<std::string>& given) {
  LaunchArguments arguments;
  Words words(given);
  while (words.next()) {
    const std::string& name = words.name();
    if (name == "--") {
      arguments.verb = words.rest();
      break;
    }
    if (!name.starts_with("-")) {  // the verb; -- may be left out
      words.step_back();
      arguments.verb = words.rest();
      break;
    }
    if (name == "-h" || name == "--help") {
      arguments.help = true;
    } else if (name == "-n" || name == "--nproc" || name == "--nproc_per_node") {
      arguments.num_local = whole_number(name, words.value(), 1);
    } else if (name == "--nnodes") {
      arguments.num_nodes = whole_number(name, words.value(), 1);
    } else if (name == "--node_rank") {
      arguments.node_rank = whole_number(name, words.value(), 0);
    } else if (name == "--rdzv") {
      arguments.rendezvous = words.value();
    } else if (name == "--bind") {
      arguments.bind = words.value();
    } else if (name == "--elastic") {
      arguments.elastic = parse_limits(words.value());
    } else if (name == "--max_restarts") {
      arguments.max_restarts = whole_number(name, words.value(), 0);
    } else if (name == "--sbatch") {
      arguments.sbatch = true;
    } else if (name == "--script") {
      arguments.sbatch = true;
      arguments.script = words.value();
    } else if (name == "--batch") {
      arguments.batch.push_back(words.value());
    } else if (name == "--no-prefix") {
      arguments.prefix = false;
    } else if (name == "--grace") {
      arguments.grace_s = seconds_of(name, words.value());
    } else {
      const auto close = nearest(name, option_names());
      throw ConfigError("launch", cat("unknown option: option=", name),
                        close.empty() ? "Options of the verb follow --. Run welkin launch --help"
                                      : cat("Did you mean: ", join(close, ", "), "? Options of the verb follow --"));
    }
  }
  if (arguments.elastic && arguments.num_local == 0 && arguments.num_nodes == 1) arguments.num_local = arguments.elastic->most;
  need_all_ranks(arguments);
  arguments.own.assign(given.begin(), given.end() - static_cast<std::ptrdiff_t>(arguments.verb.size()));
  check(arguments);
  return arguments;
}

std::string launch_help() {
  std::string text(kUsage);
  for (const LaunchOption& option : kOptions) text += option_row(option);
  return cat(text, kForeignLaunchers);
}

std::span<const LaunchOption> launch_options() { return kOptions; }

std::string typed_command(const LaunchArguments& arguments, const std::vector<std::string>& options) {
  if (arguments.num_nodes > 1) return {};
  std::vector<std::string> words = {"welkin"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("launch");
  words.insert(words.end(), arguments.own.begin(), arguments.own.end());
  words.insert(words.end(), arguments.verb.begin(), arguments.verb.end());
  return shell_line(words);
}

int run_launch(const LaunchArguments& arguments, const std::string& program, const std::vector<std::string>& options,
               const MakeBoard& make_board) {
  std::vector<std::string> command = {program};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), arguments.verb.begin(), arguments.verb.end());
  if (arguments.sbatch) {
    std::cout << job_script(arguments.script, batch_job(arguments, std::move(command)));
    return 0;
  }
  check_binding(arguments);
  const Place place = place_of(arguments.rendezvous);
  Listener listener;
  if (arguments.node_rank == 0) listener = listen_at(place.host, place.port);
  WorkerPlan plan;
  plan.command = std::move(command);
  plan.num_local = arguments.num_local;
  plan.num_nodes = arguments.num_nodes;
  plan.node = arguments.node_rank;
  plan.master_address = place.host;
  plan.master_port = arguments.node_rank == 0 ? listener.port : place.port;
  plan.listener = listener.socket.get();
  plan.prefix = arguments.prefix;
  plan.grace = std::chrono::milliseconds(static_cast<int64_t>(arguments.grace_s * 1000));
  plan.environment = {{"WELKIN_BIND", arguments.bind}, {"WELKIN_COMMAND", typed_command(arguments, options)}};
  return arguments.elastic ? run_rounds(arguments, std::move(plan), make_board) : run_workers(plan);
}

}  // namespace welkin::launch
