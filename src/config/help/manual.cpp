// SPDX-License-Identifier: Apache-2.0
#include "config/help/manual.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/text.h"

namespace welkin::config {
namespace {

using Row = std::pair<std::string_view, std::string_view>;

constexpr std::string_view kDescription =
    "Welkin trains deep networks on scientific fields: vision transformers on series of weather fields, U-Nets on boxes of "
    "matter, and models of your own. A run is described by a YAML file with presets. A value comes from the default, the file, "
    "the preset or a flag, and the last of these that gives it counts. Any key can be set with --set KEY=VALUE.";

// Variables that users set. Those that a launcher sets (ranks, addresses) are left out.
constexpr std::array kEnvironment{
    Row{"WELKIN_TORCH", "folder of the torch 2.11.0 package, where --torch is not given"},
    Row{"VIRTUAL_ENV", "the active virtual environment, where torch is looked for next"},
    Row{"WELKIN_BIND", "cores of each process, where --bind is not given: auto, off, or a list per local rank"},
    Row{"OMP_NUM_THREADS", "threads of each process; by its cores where it is not set"},
    Row{"CUDA_VISIBLE_DEVICES", "GPUs that may be used"},
    Row{"NVIDIA_TF32_OVERRIDE", "0: no TF32, whatever the key tf32 says"},
    Row{"GLOO_SOCKET_IFNAME", "network interface over which processes on CPUs exchange data"},
    Row{"WELKIN_SHARED_MEMORY",
        "auto: processes of one host sum and gather in memory that they share, and read long messages from each other's memory; "
        "buffers: they do not read; off: over TCP"},
    Row{"MASTER_ADDR, MASTER_PORT", "where the processes of a run meet, where a launcher does not say it"},
};

constexpr std::array kExitStatus{
    Row{"0", "done; also a run that a signal ended with a checkpoint"},
    Row{"1", "anything else: a loss that is not finite, memory that does not suffice, numbers that differ"},
    Row{"2", "usage or configuration: nothing was read or written"},
    Row{"3", "data, or an output that could not be written"},
    Row{"4", "communication"},
    Row{"5", "checkpoint"},
    Row{"130", "interrupted with nothing to show for it"},
};

constexpr std::array kExamples{
    Row{"Years of weather to train on, and a training on one machine:",
        "welkin data simulate --layout sc23 --scale 0.05 --out data\n"
        "welkin train --yaml_config config/ViT.yaml --config short --data_root data \\\n"
        "    --log_root logs --num_iters 20 --set 'img_size=[24,48]'"},
    Row{"What a configuration comes to, without starting anything:",
        "welkin train --yaml_config config/ViT.yaml --config short --dry_run"},
    Row{"Four processes, two of which share the weights of each layer:",
        "welkin launch -n 4 -- train --yaml_config config/ViT.yaml --config short \\\n    --tensor_parallel 2"},
    Row{"Scores of its best checkpoint:", "welkin evaluate RUN_FOLDER --json scores.json"},
    Row{"Completion for this shell:", "source <(welkin completion bash)"},
};

constexpr std::string_view kSeeAlso =
    "docs/index.md of the source tree: guide, reference and tutorials. docs/reference/keys.md holds every key that --set takes.";

// Text between requests: no backslash, hyphen or leading dot of it means anything to roff.
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool starts_line = result.empty() || result.back() == '\n';
    if (starts_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') result += "\\e";
    if (c == '-') result += "\\-";
    if (c != '\\' && c != '-') result += c;
  }
  return result;
}

// An argument of a request, in quotes.
std::string argument(std::string_view text) {
  std::string result;
  for (const char c : roff(text)) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cat('"', result, '"');
}

std::string section(std::string_view title) { return cat(".SH ", argument(title), "\n"); }
std::string subsection(std::string_view title) { return cat(".SS ", argument(title), "\n"); }
std::string entry(std::string_view name, std::string_view text) { return cat(".TP\n.B ", roff(name), "\n", roff(text), "\n"); }

std::string option_entry(const Option& option) {
  std::string value;
  if (!option.metavar.empty()) value = option.value_may_be_absent ? cat("[=", option.metavar, "]") : cat(" ", option.metavar);
  const std::string before = option.short_name.empty() ? "" : cat(option.short_name, ", ");
  return cat(".TP\n.BI ", argument(before + option.name), " ", argument(value), "\n", roff(option.help), "\n");
}

std::string option_entries(const std::vector<Option>& options) {
  std::string text;
  for (const Option& option : options) {
    if (option.name != "--help") text += option_entry(option);
  }
  return text;
}

std::string verb_text(const std::string& path, const VerbHelp& verb) {
  std::string text = subsection(verb.arguments.empty() ? path : cat(path, " ", verb.arguments));
  if (!verb.summary.empty()) text += roff(verb.summary) + ".\n";
  if (verb.takes_configuration) text += "Takes the options of a configuration too.\n";
  text += option_entries(verb.options);
  for (const VerbHelp& form : verb.forms) text += verb_text(cat(path, " ", form.name), form);
  return text;
}

std::string grouped_options(const std::vector<Option>& options) {
  std::vector<std::string> groups;
  for (const Option& option : options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  std::string text;
  for (const std::string& group : groups) {
    text += subsection(group);
    for (const Option& option : options) {
      if (option.group == group) text += option_entry(option);
    }
  }
  return text;
}

template <typename Rows>
std::string entries(const Rows& rows) {
  std::string text;
  for (const auto& [name, meaning] : rows) text += entry(name, meaning);
  return text;
}

std::string example_text() {
  std::string text;
  for (const auto& [what, commands] : kExamples)
    text += cat(".PP\n", roff(what), "\n.PP\n.nf\n.RS\n", roff(commands), "\n.RE\n.fi\n");
  return text;
}

}  // namespace

std::string manual(const ProgramHelp& program) {
  std::string text = cat(".TH WELKIN 1 \"\" ", argument("welkin " + program.version), " \"User Commands\"\n.ad l\n.nh\n",
                         section("NAME"), "welkin \\- train deep networks on scientific fields\n", section("SYNOPSIS"),
                         ".B welkin\n.RI [ options ]\n.I verb\n.RI [ arguments ]\n", section("DESCRIPTION"), roff(kDescription),
                         "\n", section("VERBS"));
  for (const VerbHelp& verb : program.verbs) text += verb_text("welkin " + verb.name, verb);
  return cat(text, section("OPTIONS"), subsection("Before the verb"), option_entries(program.options),
             ".PP\nThe following are those of verbs that take a configuration. A switch has a \\-\\-no\\-... form.\n",
             grouped_options(program.configuration), section("ENVIRONMENT"), entries(kEnvironment), section("EXIT STATUS"),
             entries(kExitStatus), section("EXAMPLES"), example_text(), section("SEE ALSO"), roff(kSeeAlso), "\n");
}

}  // namespace welkin::config
