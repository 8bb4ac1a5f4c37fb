// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <utility>

#include "core/text.h"

namespace welkin {
namespace {

// The one piece of process-wide state: an error may be made where no context reaches, and must still name its rank.
std::string& process_label() {
  static std::string label;
  return label;
}

std::string compose(std::string_view component, std::string_view what, std::string_view remedy) {
  if (what.ends_with('.')) what.remove_suffix(1);  // of an error that it quotes
  std::string text = cat("[", component, "] ", what, ".");
  if (!remedy.empty()) text += cat(" ", remedy, ".");
  if (!process_label().empty()) text += cat(" (", process_label(), ")");
  return text;
}

}  // namespace

Error::Error(ExitCode code, std::string_view component, std::string_view what, std::string_view remedy)
    : std::runtime_error(compose(component, what, remedy)), code_(code) {}

void set_process_label(std::string label) { process_label() = std::move(label); }

void check_failed(const char* condition, const char* file, int line, std::string_view what) {
  throw InternalError(cat(what, ": ", condition, " at ", file, ":", line));
}

}  // namespace welkin
