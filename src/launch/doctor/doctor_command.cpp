// SPDX-License-Identifier: Apache-2.0
#include "launch/doctor/doctor_command.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/process/host.h"
#include "core/text.h"
#include "launch/doctor/job_findings.h"
#include "launch/doctor/link_findings.h"
#include "launch/doctor/machine_findings.h"
#include "launch/doctor/page.h"
#include "launch/doctor/path_findings.h"
#include "launch/doctor/torch_findings.h"

namespace welkin::launch {
namespace {

constexpr std::string_view kDoctorUsage =
    "usage: welkin doctor [OPTIONS] [PATH...]\n"
    "\n"
    "Shows what this machine and job offer, and problems to expect: green, amber or red, with what to do.\n"
    "Paths: folders of data and logs, whose file systems are measured. Within a job of several ranks\n"
    "(srun -N2 welkin doctor) all ranks connect to each other.\n"
    "\n";

constexpr std::array kDoctorOptions{
    LaunchOption{"--nproc", "-n", "N", "start N ranks on this node and test the connections between them"},
    LaunchOption{"--json", "", "FILE", "write the page as JSON to this file; - prints it instead of the text"},
    LaunchOption{"--megabytes", "", "X", "size of the file that measures a path (default 256)"},
    LaunchOption{"--help", "-h", "", "print this text"},
};
constexpr size_t kOptionColumn = 24, kHelpColumns = 100;

double number_of_words(const std::string& option, const std::string& text, double least, double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  throw ConfigError("doctor", cat("not a number of the right size: ", option, "=", text, ", least=", least, ", most=", most),
                    "Run welkin doctor --help");
}

std::string word_behind(const std::vector<std::string>& words, size_t& at) {
  if (++at < words.size()) return words[at];
  throw ConfigError("doctor", cat("an option needs a value: option=", words.back()), "Run welkin doctor --help");
}

const char* environment(const char* name) { return std::getenv(name); }

std::filesystem::path torch_folder(const TorchSearch& search) {
  try {
    return find_torch(search);
  } catch (const ConfigError&) {
    return {};  // torch_findings says it
  }
}

Findings own_findings(const DoctorArguments& arguments, const TorchSearch& search, const std::filesystem::path& program) {
  Findings findings{{"host", Verdict::Good, host_name(), ""}};
  const auto add = [&](Findings more) { std::move(more.begin(), more.end(), std::back_inserter(findings)); };
  add(processor_findings());
  add(core_findings());
  add(memory_findings());
  add(limit_findings());
  add(torch_findings(search, program));
  add(gpu_findings(torch_folder(search)));
  add(job_findings(environment));
  add(network_findings(environment));
  for (const std::filesystem::path& path : arguments.paths)
    add(path_findings(path, static_cast<uint64_t>(arguments.megabytes * 1048576)));
  return findings;
}

// Adds other machines' findings that are not good, under their names: pages of forty nodes are alike but for one.
void add_other_hosts(const LinkReport& report, Findings& findings) {
  std::set<std::string> seen{host_name()};
  for (size_t i = 0; i < report.pages.size(); ++i) {
    if (!seen.insert(report.hosts[i]).second) continue;
    for (Finding& finding : findings_of(report.pages[i])) {
      if (finding.verdict == Verdict::Good) continue;
      finding.found = cat(report.hosts[i], ": ", finding.found);
      findings.push_back(std::move(finding));
    }
  }
}

// torchrun's agent holds the port itself, and a job that meets at a file names none.
bool can_test_links(const RankInfo& place) {
  return place.world_size > 1 && !place.store_is_served && place.store_file.empty() && place.elastic.empty();
}

RankInfo place_in_job() {
  try {
    return find_ranks(environment);
  } catch (const ConfigError&) {
    return {};  // job_findings says it
  }
}

void publish_page(const DoctorArguments& arguments, const Findings& findings) {
  if (!arguments.json.empty() && arguments.json != "-") write_file_atomically(arguments.json, page_json(findings));
  if (arguments.json == "-") {
    std::cout << page_json(findings);
  } else {
    std::cout << page_text(findings, isatty(STDOUT_FILENO) == 1);
  }
}

// Starts the same command for each of N ranks, which test their connections.
int start_ranks(const DoctorArguments& arguments, const std::filesystem::path& program, const std::vector<std::string>& options,
                const MakeBoard& make_board) {
  LaunchArguments launch;
  launch.num_local = arguments.num_local;
  launch.bind = "off";
  launch.prefix = false;
  launch.verb = {"doctor", "--megabytes", cat(arguments.megabytes)};
  if (!arguments.json.empty()) launch.verb.insert(launch.verb.end(), {"--json", arguments.json});
  for (const std::filesystem::path& path : arguments.paths) launch.verb.push_back(path.string());
  return run_launch(launch, program.string(), options, make_board);
}

}  // namespace

DoctorArguments parse_doctor(const std::vector<std::string>& words) {
  DoctorArguments arguments;
  for (size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "-h" || word.starts_with("--help")) {
      arguments.help = true;
    } else if (word == "-n" || word == "--nproc") {
      arguments.num_local = static_cast<int64_t>(number_of_words("nproc", word_behind(words, at), 1, 4096));
    } else if (word == "--json") {
      arguments.json = word_behind(words, at);
    } else if (word == "--megabytes") {
      arguments.megabytes = number_of_words("megabytes", word_behind(words, at), 1, 1e6);
    } else if (word.starts_with("-")) {
      throw ConfigError("doctor", cat("unknown option: option=", word), "Run welkin doctor --help");
    } else {
      arguments.paths.emplace_back(word);
    }
  }
  return arguments;
}

std::string doctor_help() {
  std::string text(kDoctorUsage);
  for (const LaunchOption& option : kDoctorOptions) {
    std::string left = cat("  ", option.short_name, option.short_name.empty() ? "" : ", ", option.name, " ", option.metavar);
    left.resize(kOptionColumn, ' ');
    text += cat(left, wrapped(option.help, kHelpColumns, kOptionColumn), "\n");
  }
  return text;
}

std::span<const LaunchOption> doctor_options() { return kDoctorOptions; }

int run_doctor(const DoctorArguments& arguments, const TorchSearch& search, const std::filesystem::path& program,
               const std::vector<std::string>& options, const MakeBoard& make_board) {
  if (arguments.num_local > 0) return start_ranks(arguments, program, options, make_board);
  const RankInfo place = place_in_job();
  Findings findings;
  if (place.local_rank == 0) findings = own_findings(arguments, search, program);
  if (can_test_links(place)) {
    const LinkReport report = test_links({.place = place, .host = host_name(), .page_json = page_json(findings)});
    findings.insert(findings.end(), report.findings.begin(), report.findings.end());
    add_other_hosts(report, findings);
  } else if (place.world_size > 1 && place.rank == 0) {
    findings.push_back({"links", Verdict::Good, cat("not tested: ", place.launcher, " holds the port of the meeting"), ""});
  }
  if (place.rank != 0) return 0;
  publish_page(arguments, findings);
  return worst(findings) == Verdict::Bad ? 1 : 0;
}

}  // namespace welkin::launch
