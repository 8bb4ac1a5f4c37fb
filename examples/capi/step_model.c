/* SPDX-License-Identifier: Apache-2.0
   A C program that steps with a trained model: fields in, forecasts out, and what a call costs.

   cc step_model.c -I PREFIX/include -L PREFIX/lib -lwelkin_c -lm -Wl,-rpath,PREFIX/lib -o step_model
   ./step_model RUN_FOLDER STEPS ["--device cpu"]
   Prints the model's channels, the mean of each target after the last step, and microseconds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <welkin.h>

static void check(welkin_status status) {
  if (status == WELKIN_OK) return;
  fprintf(stderr, "step_model: %s\n", welkin_last_error());
  exit(status);
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: step_model RUN_FOLDER STEPS [OPTIONS]\n");
    return WELKIN_USAGE;
  }
  welkin_model* model = NULL;
  check(welkin_open(argv[1], argc > 3 ? argv[3] : NULL, &model));

  int64_t shape[3] = {1, 1, 1};
  const int num_dims = welkin_shape(model, shape);
  const int64_t count = shape[0] * shape[1] * shape[2];
  const int num_inputs = welkin_num_channels(model, WELKIN_INPUT), num_targets = welkin_num_channels(model, WELKIN_TARGET);
  printf("%d inputs and %d targets of %d dims, %lld values each\n", num_inputs, num_targets, num_dims, (long long)count);

  double* field = malloc((size_t)count * sizeof *field);
  for (int64_t i = 0; i < count; ++i) field[i] = 280 + 10 * sin(6.283185307 * (double)i / (double)count);
  const double begin_us = now_us();
  for (int i = 0; i < num_inputs; ++i) check(welkin_set_field(model, welkin_channel_name(model, WELKIN_INPUT, i), field, WELKIN_FLOAT64, NULL));
  const double set_us = (now_us() - begin_us) / num_inputs;

  double step_us = 0;
  const int steps = atoi(argv[2]);
  for (int step = 0; step < steps; ++step) {
    const double before_us = now_us();
    check(welkin_step(model));
    step_us += (now_us() - before_us) / steps;
    if (step + 1 < steps) check(welkin_advance(model));
  }

  const double before_us = now_us();
  for (int i = 0; i < num_targets; ++i) {
    const char* name = welkin_channel_name(model, WELKIN_TARGET, i);
    check(welkin_get_field(model, name, field, WELKIN_FLOAT64, NULL));
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += field[k];
    printf("%s %.6g %s\n", name, sum / (double)count, welkin_channel_unit(model, WELKIN_TARGET, i));
  }
  printf("set_field %.1f us, step %.1f us, get_field %.1f us\n", set_us, step_us, (now_us() - before_us) / num_targets);
  free(field);
  welkin_close(model);
  return 0;
}
