// SPDX-License-Identifier: Apache-2.0
// The errors that a user may see, one class per kind, and the check for bugs of our own. Every message reads
// `[component] what is wrong: name=value, other=value. Do this.`; the label of the process (rank and mesh coordinates) is added
// here.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace welkin {

// The exit code of a verb. 130 follows the shell's convention for SIGINT.
enum class ExitCode : int {
  Done = 0,
  Other = 1,
  Usage = 2,
  Data = 3,
  Comm = 4,
  Checkpoint = 5,
  Defective = 6,
  Interrupted = 130
};

class Error : public std::runtime_error {
 public:
  // `what` names the values (`name=value, other=value`), `remedy` is what to do. Both come without a final full stop.
  Error(ExitCode code, std::string_view component, std::string_view what, std::string_view remedy);
  ExitCode exit_code() const { return code_; }

 private:
  ExitCode code_;
};

struct ConfigError : Error {
  ConfigError(std::string_view component, std::string_view what, std::string_view remedy)
      : Error(ExitCode::Usage, component, what, remedy) {}
};
struct DataError : Error {
  DataError(std::string_view component, std::string_view what, std::string_view remedy)
      : Error(ExitCode::Data, component, what, remedy) {}
};
struct CommError : Error {
  CommError(std::string_view component, std::string_view what, std::string_view remedy)
      : Error(ExitCode::Comm, component, what, remedy) {}
};
struct CheckpointError : Error {
  CheckpointError(std::string_view component, std::string_view what, std::string_view remedy)
      : Error(ExitCode::Checkpoint, component, what, remedy) {}
};
// Thrown when the first SIGINT or SIGTERM arrived and nothing could be saved.
struct Interrupted : Error {
  Interrupted(std::string_view component, std::string_view what, std::string_view remedy)
      : Error(ExitCode::Interrupted, component, what, remedy) {}
};
// A bug in Welkin, never caused by user input.
struct InternalError : Error {
  explicit InternalError(std::string_view what)
      : Error(ExitCode::Other, "internal", what, "This is a bug in Welkin: please report it with the command that you ran") {}
};

// Set once at start, before threads exist, by code that knows the rank ("rank 3, dp 1, tp 1"); empty in a run of one process.
void set_process_label(std::string label);

[[noreturn]] void check_failed(const char* condition, const char* file, int line, std::string_view what);

}  // namespace welkin

// Stays on in release. For states that only a bug can reach; user input goes through the four kinds above.
#define WELKIN_CHECK(condition, what)                                               \
  do {                                                                              \
    if (!(condition)) ::welkin::check_failed(#condition, __FILE__, __LINE__, what); \
  } while (0)
