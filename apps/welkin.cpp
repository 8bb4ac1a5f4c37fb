// SPDX-License-Identifier: Apache-2.0
// The entry of libwelkin.so: reads the options before the verb, finds and runs the verb, and turns its exceptions into an
// exit code.
#include <c10/util/Exception.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/check_helper.h"
#include "apps/cli/find_verb.h"
#include "apps/cli/global_options.h"
#include "apps/cli/help.h"
#include "apps/cli/verbs.h"
#include "core/error.h"
#include "core/text.h"
#include "data/formats/check_arrays.h"
#include "launch/plugin.h"
#include "train/device/memory_report.h"
#include "train/learn/registries.h"
#include "version.h"

namespace welkin::apps {
namespace {

void load_plugins(const std::vector<std::filesystem::path>& paths, train::Registries& registries) {
  using Register = void (*)(train::Registries&);
  for (const auto& path : paths) reinterpret_cast<Register>(launch::load_plugin(path, "welkin_register"))(registries);
}

// True for a pipe whose reader has ended, as with `head`, and for an output that was closed from the start.
bool nobody_reads() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

// Fails if standard output takes no more (a full disk): results would be lost. A reader that stopped has what it wants.
void check_said(std::ostream& out) {
  out.flush();
  if (out.good() || nobody_reads()) return;
  throw DataError("output", "standard output could not be written to its end",
                  "Look for space where it goes, and run the command again");
}

int dispatch(std::span<char*> arguments) {
  GlobalOptions options = parse_global_options(arguments);
  options.rest = without_help_word(std::move(options.rest));
  if (options.version || (options.rest.size() == 1 && options.rest.front() == std::string_view("--version"))) {
    std::cout << "welkin " << kVersion << "\n";
    return 0;
  }
  if (options.help || options.rest.empty() || asks_for_help(options.rest.front())) {
    const bool is_wanted = options.help || !options.rest.empty();
    print_usage(is_wanted ? std::cout : std::cerr);
    return is_wanted ? 0 : static_cast<int>(ExitCode::Usage);
  }
  const FoundVerb found = find_verb(options.rest);
  if (found.verb == nullptr) {
    const auto group = verbs_of(options.rest.front());
    if (group.empty() || options.rest.size() == 1 || !asks_for_help(options.rest[1])) report_unknown_verb(options.rest);
    print_usage(std::cout, group);
    return 0;
  }
  train::Registries registries;
  train::add_builtins(registries);
  load_plugins(options.plugins, registries);
  Application application{std::cout, std::cerr, registries, options.typed};
  std::string path = cat("welkin ", found.verb->name);
  std::vector<char*> words{path.data()};
  words.insert(words.end(), options.rest.begin() + static_cast<std::ptrdiff_t>(found.num_words), options.rest.end());
  const int num_words = static_cast<int>(words.size());
  words.push_back(nullptr);
  data::CheckHelper helper = check_helper();
  helper.arguments = {"hdf5"};
  data::check_hdf5_in_children(std::move(helper));
  const int code = found.verb->run(application, num_words, words.data());
  check_said(application.out);
  return code;
}

// Call inside a catch block: for exceptions that are not Welkin's. Reports exhausted memory for verbs that do not explain it
// themselves.
int report_other(const char* text) {
  const auto memory = train::memory_error_if_any(/*limit_bytes=*/0);
  std::cerr << "welkin: " << (memory ? memory->what() : text) << std::endl;
  return static_cast<int>(ExitCode::Other);
}

}  // namespace
}  // namespace welkin::apps

// Called by the launcher (apps/launcher.cpp), which has loaded torch.
extern "C" __attribute__((visibility("default"))) int welkin_main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes (ulimit -f) is then an error of write(2), reported like a full disk
  try {
    return welkin::apps::dispatch({argv + std::min(argc, 1), static_cast<size_t>(std::max(argc - 1, 0))});
  } catch (const welkin::Error& error) {
    std::cerr << "welkin: " << error.what() << std::endl;
    return static_cast<int>(error.exit_code());
  } catch (const c10::Error& error) {  // torch's text without its backtrace
    return welkin::apps::report_other(error.what_without_backtrace());
  } catch (
      const std::filesystem::filesystem_error& error) {  // a path that cannot even be looked at: a loop of links, a closed folder
    std::cerr << "welkin: [files] " << error.what() << ". Look at the path named." << std::endl;
    return static_cast<int>(welkin::ExitCode::Data);
  } catch (const std::exception& error) {
    return welkin::apps::report_other(error.what());
  }
}
