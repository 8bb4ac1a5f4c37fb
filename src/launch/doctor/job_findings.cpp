// SPDX-License-Identifier: Apache-2.0
#include "launch/doctor/job_findings.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "launch/job_secret.h"
#include "launch/sockets.h"

namespace welkin::launch {
namespace {

namespace fs = std::filesystem;

Finding of_error(std::string topic, const Error& error) { return {std::move(topic), Verdict::Bad, error.what(), "As it says"}; }

Finding secret_finding(const ReadVariable& read, const RankInfo& place) {
  try {
    const bool is_absent = job_secret(read).empty();
    return judged("secret", is_absent ? "none" : "given", is_absent && place.num_nodes > 1, Verdict::Doubtful,
                  "Whoever reaches the ports may join the job: export WELKIN_JOB_SECRET=$(openssl rand -hex 32) before srun");
  } catch (const ConfigError& error) {
    return of_error("secret", error);
  }
}

Finding thread_finding(const ReadVariable& read, const RankInfo& place) {
  const char* given = read("OMP_NUM_THREADS");
  const int64_t cores = usable_cores();
  if (given == nullptr || *given == '\0')
    return {"threads", Verdict::Good, cat(cores, " usable cores, OMP_NUM_THREADS is not set"), ""};
  char* rest = nullptr;
  const int64_t threads = std::strtoll(given, &rest, 10);
  // OpenMP takes a list too: its numbers are for nested regions.
  if (threads < 1 || (*rest != '\0' && *rest != ',')) {
    return {"threads", Verdict::Bad, cat("OMP_NUM_THREADS=", given, " is no number of threads"),
            "libgomp passes over it, and starts a thread for each core: unset it, or give a number"};
  }
  const int64_t wanted = threads * (cores < place.local_size ? 1 : place.local_size);
  return judged("threads", cat("OMP_NUM_THREADS=", given, ", usable cores ", cores), threads > cores && wanted > cores,
                Verdict::Bad, "Threads that share cores wait for each other, up to 70 times as long: unset it");
}

// Mb/s as the driver says, or nothing.
std::string rate_of(const std::string& interface_name) {
  std::ifstream file(cat("/sys/class/net/", interface_name, "/speed"));
  int64_t rate = 0;
  if (!(file >> rate) || rate <= 0) return "";
  return cat(" at ", static_cast<double>(rate) / 1000, " Gb/s");
}

}  // namespace

Findings job_findings(const ReadVariable& read) {
  Findings findings;
  RankInfo place;
  try {
    place = find_ranks(read);
    findings.push_back({"launcher", Verdict::Good, place.launcher.empty() ? "none: a process of its own" : describe(place), ""});
  } catch (const ConfigError& error) {
    findings.push_back(of_error("launcher", error));
  }
  findings.push_back(thread_finding(read, place));
  findings.push_back(secret_finding(read, place));
  return findings;
}

Findings network_findings(const ReadVariable& read) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) all = nullptr;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  std::map<std::string, std::string> names;  // in a fixed order, once each
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    const bool has_address =
        entry->ifa_addr != nullptr && (entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6);
    if (!has_address || (entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    names.emplace(entry->ifa_name, cat(entry->ifa_name, rate_of(entry->ifa_name)));
  }
  std::vector<std::string> shown;
  for (const auto& [name, text] : names) shown.push_back(text);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/sys/class/infiniband", ignored)) {
    shown.push_back(cat("InfiniBand ", entry.path().filename().string()));
  }
  Findings findings;
  findings.push_back(judged("interfaces", shown.empty() ? "loopback alone" : join(shown, ", "), shown.empty(), Verdict::Doubtful,
                            "Ranks of other machines cannot be reached"));
  const char* chosen = read("GLOO_SOCKET_IFNAME");
  if (chosen != nullptr && *chosen != '\0') {
    try {
      findings.push_back({"interface", Verdict::Good, cat("GLOO_SOCKET_IFNAME=", chosen, ", ", interface_address(chosen)), ""});
    } catch (const CommError& error) {
      findings.push_back(of_error("interface", error));
    }
  }
  return findings;
}

}  // namespace welkin::launch
