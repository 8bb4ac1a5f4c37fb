// SPDX-License-Identifier: Apache-2.0
// The executable `welkin`. It is linked to neither torch nor libwelkin.so: it finds its place among the processes of a run, takes
// its cores, finds the torch wheel, sets the variables that torch's libraries read while loading, loads both and calls
// welkin_main (apps/welkin.cpp). `welkin launch` and `welkin doctor` need no torch and end here.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "launch/doctor/doctor_command.h"
#include "launch/launch_command.h"
#include "launch/ranks.h"
#include "launch/torch_loader.h"
#include "launch/torch_location.h"
#include "launch/worker_start.h"
#include "parallel/elastic/store_board.h"

namespace {

namespace fs = std::filesystem;

// The options before the verb that the launcher uses; welkin_main checks all of them.
struct EarlyOptions {
  std::optional<fs::path> torch;
  std::string bind;
  int verb_at = 0;  // argc if there is no verb
};

EarlyOptions early_options(int argc, char** argv) {
  EarlyOptions options;
  const char* bind = std::getenv("WELKIN_BIND");
  options.bind = bind != nullptr && *bind != '\0' ? bind : "auto";
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; ++i) {
    const std::string_view option = argv[i];
    const bool takes_value = option == "--torch" || option == "--plugin" || option == "--bind";
    if (!takes_value || i + 1 == argc) continue;
    ++i;
    if (option == "--torch") options.torch = argv[i];
    if (option == "--bind") options.bind = argv[i];
  }
  options.verb_at = i;
  return options;
}

// Errors in the environment are left to the verb: most verbs have one process, whatever the environment says.
welkin::launch::RankInfo place_of_process() {
  try {
    return welkin::launch::find_ranks([](const char* name) { return std::getenv(name); });
  } catch (const welkin::ConfigError&) {
    return {};
  }
}

int launch(int argc, char** argv, int verb_at) {
  const auto arguments = welkin::launch::parse_launch(std::vector<std::string>(argv + verb_at + 1, argv + argc));
  if (arguments.help) {
    std::cout << welkin::launch::launch_help();
    return 0;
  }
  return welkin::launch::run_launch(arguments, fs::canonical("/proc/self/exe"),
                                    std::vector<std::string>(argv + 1, argv + verb_at), welkin::parallel::make_store_board);
}

// Runs before torch, too: it explains why torch does not load.
int doctor(int argc, char** argv, const EarlyOptions& options, const welkin::launch::TorchSearch& search) {
  const int verb_at = options.verb_at;
  const auto arguments = welkin::launch::parse_doctor(std::vector<std::string>(argv + verb_at + 1, argv + argc));
  if (arguments.help) {
    std::cout << welkin::launch::doctor_help();
    return 0;
  }
  welkin::launch::prepare_worker(place_of_process(), options.bind);
  return welkin::launch::run_doctor(arguments, search, fs::canonical("/proc/self/exe"),
                                    std::vector<std::string>(argv + 1, argv + verb_at), welkin::parallel::make_store_board);
}

// SIGUSR1 announces the end of a job, perhaps while libraries load: it stays blocked until its handler is there
// (core/process/signals.h, the launcher's Crew). Other verbs end by it as by any signal.
void hold_announcements(int argc, char** argv) {
  const int verb_at = early_options(argc, argv).verb_at;
  const std::string_view verb = verb_at < argc ? argv[verb_at] : "";
  sigset_t announcements;
  sigemptyset(&announcements);
  sigaddset(&announcements, SIGUSR1);
  sigprocmask(verb == "train" || verb == "launch" ? SIG_BLOCK : SIG_UNBLOCK, &announcements, nullptr);
}

int run(int argc, char** argv) {
  const EarlyOptions options = early_options(argc, argv);
  if (options.verb_at < argc && std::string_view(argv[options.verb_at]) == "launch") return launch(argc, argv, options.verb_at);
  const fs::path folder = fs::canonical("/proc/self/exe").parent_path();
  const welkin::launch::TorchSearch search{.flag = options.torch,
                                           .environment = welkin::launch::environment_path("WELKIN_TORCH"),
                                           .virtual_env = welkin::launch::environment_path("VIRTUAL_ENV"),
                                           .nearby_venv = folder.parent_path().parent_path() / ".venv"};
  if (options.verb_at < argc && std::string_view(argv[options.verb_at]) == "doctor") {
    return doctor(argc, argv, options, search);
  }
  const fs::path package = welkin::launch::find_torch(search);
  welkin::launch::prepare_worker(place_of_process(), options.bind);
  welkin::launch::set_loading_environment();
  const bool with_cuda = welkin::launch::has_cuda_device();
  welkin::launch::load_torch(package, with_cuda);
  return welkin::launch::load_welkin(folder, with_cuda)(argc, argv);
}

// Ends the process without the destructors of libraries. Torch's take back some thousand operators one by one: a third of the
// processor time of a short command. What a verb opened it has closed by itself. Sanitizers report at a usual end.
int end_process(int code) {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  _exit(code);
#endif
  return code;
}

// A file that got the number of a closed stream would get what is written to that stream.
void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0) _exit(static_cast<int>(welkin::ExitCode::Other));
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_closed_streams();
  std::signal(SIGPIPE, SIG_IGN);  // `| head`: a reader that goes away ends its output, not the run
  hold_announcements(argc, argv);
  try {
    return end_process(run(argc, argv));
  } catch (const welkin::Error& error) {
    std::cerr << "welkin: " << error.what() << "\n";
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    std::cerr << "welkin: " << error.what() << "\n";
    return static_cast<int>(welkin::ExitCode::Other);
  }
}
