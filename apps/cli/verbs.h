// SPDX-License-Identifier: Apache-2.0
// The verbs of `welkin`. A verb is one file: `welkin data inspect` is `int verb_data_inspect(Application&, int, char**)` in
// apps/data/inspect.cpp. apps/CMakeLists.txt holds the one list of verbs with their summaries; it knows nothing else about them.
#pragma once

#include <cstddef>
#include <span>

#include "apps/cli/application.h"

namespace welkin::apps {

// argv[0] is what the user typed so far ("welkin data inspect"), the rest are the verb's own arguments, which it parses itself:
// with a CLI::App of its own (parse_arguments in application.h), or with config/ for verbs that take a configuration.
// Returns the exit code of the process. Errors are thrown (core/error.h): welkin.cpp catches once and prints.
using VerbFunction = int (*)(Application& application, int argc, char** argv);

int verb_train(Application& application, int argc, char** argv);
int verb_evaluate(Application& application, int argc, char** argv);
int verb_predict(Application& application, int argc, char** argv);
int verb_forecast(Application& application, int argc, char** argv);
int verb_calibrate(Application& application, int argc, char** argv);
int verb_init(Application& application, int argc, char** argv);
int verb_data_simulate(Application& application, int argc, char** argv);
int verb_data_ingest(Application& application, int argc, char** argv);
int verb_data_inspect(Application& application, int argc, char** argv);
int verb_data_stats(Application& application, int argc, char** argv);
int verb_data_climatology(Application& application, int argc, char** argv);
int verb_data_convert(Application& application, int argc, char** argv);
int verb_verify(Application& application, int argc, char** argv);
int verb_bench(Application& application, int argc, char** argv);
int verb_ckpt_inspect(Application& application, int argc, char** argv);
int verb_ckpt_package(Application& application, int argc, char** argv);
int verb_ckpt_reshard(Application& application, int argc, char** argv);
int verb_ckpt_verify(Application& application, int argc, char** argv);
int verb_ckpt_diff(Application& application, int argc, char** argv);
int verb_ckpt_export(Application& application, int argc, char** argv);
int verb_ckpt_import(Application& application, int argc, char** argv);
int verb_plan_estimate(Application& application, int argc, char** argv);
int verb_plan_search(Application& application, int argc, char** argv);
int verb_plan_schedule(Application& application, int argc, char** argv);
int verb_report(Application& application, int argc, char** argv);
int verb_doctor(Application& application, int argc, char** argv);
int verb_completion(Application& application, int argc, char** argv);
int verb_launch(Application& application, int argc, char** argv);

struct Verb {
  const char* name;  // "train", "data inspect"
  const char* summary;
  VerbFunction run;
};

// The verbs of this build, in the order of the help text. Written by CMake (verb_table.cpp.in).
extern const Verb kVerbs[];
extern const int kNumVerbs;

inline std::span<const Verb> verbs() { return {kVerbs, static_cast<size_t>(kNumVerbs)}; }

}  // namespace welkin::apps
