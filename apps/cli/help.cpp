// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/help.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "apps/cli/global_options.h"
#include "apps/cli/verbs.h"
#include "core/text.h"
#include "train/learn/registries.h"
#include "version.h"

namespace welkin::apps {
namespace {

// Returns the help of a verb, or of one form of it. Forms come later: each is asked, too.
config::VerbHelp ask(Application& application, const Verb& verb, const std::string& form, const std::string& summary) {
  config::VerbHelp answer{.name = form.empty() ? verb.name : form, .summary = summary};
  Application asking{application.out, application.err, application.registries, application.options, &answer};
  std::string path = cat("welkin ", verb.name), word = form, help = "--help";
  std::vector<char*> words{path.data()};
  if (!form.empty()) words.push_back(word.data());
  words.push_back(help.data());
  const int num_words = static_cast<int>(words.size());
  words.push_back(nullptr);
  verb.run(asking, num_words, words.data());
  return answer;
}

const config::Option* find_same(const config::VerbHelp& form, const config::Option& option) {
  const auto is_same = [&](const config::Option& other) { return other.name == option.name && other.help == option.help; };
  const auto found = std::find_if(form.options.begin(), form.options.end(), is_same);
  return found == form.options.end() ? nullptr : &*found;
}

// Options that all forms of a verb have, with the choices of each, for a verb without options of its own: `welkin data simulate
// --layout sc22 --out DIR`.
std::vector<config::Option> shared_options(const std::vector<config::VerbHelp>& forms) {
  std::vector<config::Option> shared;
  for (config::Option option : forms.front().options) {
    bool is_shared = true;
    for (size_t i = 1; i < forms.size(); ++i) {
      const config::Option* other = find_same(forms[i], option);
      is_shared = is_shared && other != nullptr;
      if (other != nullptr) option.choices.insert(option.choices.end(), other->choices.begin(), other->choices.end());
    }
    if (!option.choices.empty()) option.metavar = join(option.choices, "|");
    if (is_shared) shared.push_back(std::move(option));
  }
  return shared;
}

config::VerbHelp describe_verb(Application& application, const Verb& verb) {
  config::VerbHelp answer = ask(application, verb, "", verb.summary);
  for (config::VerbHelp& form : answer.forms) form = ask(application, verb, form.name, form.summary);
  if (answer.options.empty() && !answer.forms.empty()) answer.options = shared_options(answer.forms);
  return answer;
}

}  // namespace

bool asks_for_help(std::string_view word) { return word == "-h" || word == "--help" || word == "--help=all"; }

void print_help(Application& application, const config::HelpPage& page, config::Help form) {
  if (application.recorded == nullptr) {
    application.out << config::help_text(page, form);
    return;
  }
  application.recorded->options = config::own_options(page.extra);
  application.recorded->arguments = page.usage.front();
  application.recorded->takes_configuration = true;
  application.recorded->takes_paths = page.usage.size() > 1;
  for (const config::ExtraFlag& flag : page.extra) {
    if (flag.is_form) application.recorded->forms.push_back({.name = "--" + flag.name, .summary = flag.help});
  }
}

void print_forms(Application& application, std::string_view program, const std::vector<Form>& forms, std::string_view more) {
  for (const Form& form : forms) {
    if (application.recorded != nullptr) {
      application.recorded->forms.push_back({.name = std::string(form.word), .summary = std::string(form.summary)});
      continue;
    }
    std::string line = cat(program, " ", form.word, " --help");
    line.resize(std::max<size_t>(line.size() + 3, 38), ' ');
    application.out << line << form.summary << "\n";
  }
  if (application.recorded == nullptr) application.out << more;
}

config::ProgramHelp describe_program(Application& application) {
  config::ProgramHelp program{.version = kVersion,
                              .options = global_options(),
                              .configuration = config::configuration_options(),
                              .keys = config::key_options(application.registries.known_names()),
                              .verbs = {}};
  for (const Verb& verb : verbs()) {
    program.verbs.push_back(describe_verb(application, verb));
  }
  return program;
}

}  // namespace welkin::apps
