/* SPDX-License-Identifier: Apache-2.0
   A C program that trains a model on what it computes: a pattern that moves and fades, pair by pair, without files. Where the buffer
   is full it goes on with work of its own instead of waiting.

   cc train_model.c -I PREFIX/include -L PREFIX/lib -lwelkin_c -lm -Wl,-rpath,PREFIX/lib -o train_model
   ./train_model PAIRS "--yaml_config waves.yaml --config waves --set in_channels=[u] --log_root logs"
   Prints where the run is, how often the buffer was full, and microseconds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <welkin.h>

static void check(welkin_status status) {
  if (status == WELKIN_OK) return;
  fprintf(stderr, "train_model: %s\n", welkin_last_error());
  exit(status);
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Waves of two lengths, which move on by `time` and fade with it; each pair begins elsewhere. */
static void fill(double* field, const int64_t shape[3], int pair, double time) {
  const double turn = 6.283185307;
  for (int64_t y = 0; y < shape[0]; ++y) {
    for (int64_t x = 0; x < shape[1]; ++x) {
      const double east = (double)x / (double)shape[1] - time, north = (double)y / (double)shape[0] + 0.5 * time;
      field[y * shape[1] + x] = exp(-time) * (sin(turn * (2 * east + 0.37 * pair)) + 0.5 * cos(turn * (3 * north + east + 0.61 * pair)));
    }
  }
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: train_model PAIRS OPTIONS\n");
    return WELKIN_USAGE;
  }
  welkin_training* training = NULL;
  check(welkin_train_open(argv[2], &training));
  check(welkin_train_set_channel(training, "u", "m s-1", 0, 0));
  int64_t shape[3] = {1, 1, 1};
  if (welkin_train_shape(training, shape) != 2) {
    fprintf(stderr, "train_model: give img_size with two numbers\n");
    return WELKIN_USAGE;
  }
  double* field = malloc((size_t)(shape[0] * shape[1]) * sizeof *field);
  double set_us = 0, give_us = 0;
  long full = 0, pairs = 0;
  welkin_status status = WELKIN_OK;
  for (int pair = 0; pair < atoi(argv[1]) && status != WELKIN_OVER; ++pair) {
    for (int side = WELKIN_INPUT; side <= WELKIN_TARGET; ++side) {
      fill(field, shape, pair, side == WELKIN_INPUT ? 0 : 0.1);
      const double before_us = now_us();
      check(welkin_train_set_field(training, (welkin_side)side, "u", field, WELKIN_FLOAT64, NULL));
      set_us += now_us() - before_us;
    }
    for (;;) {
      const double before_us = now_us();
      status = welkin_train_give(training, 0);
      if (status != WELKIN_FULL) {
        give_us += now_us() - before_us;
        break;
      }
      ++full; /* here a simulation goes on */
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (status != WELKIN_OVER) check(status);
    ++pairs;
  }
  welkin_progress progress;
  check(welkin_train_progress(training, &progress));
  printf("%lld pairs, step %lld of %lld; the buffer was full %ld times\n", (long long)progress.pairs, (long long)progress.step,
         (long long)progress.total_steps, full);
  printf("set_field %.1f us, give %.1f us\n", set_us / (double)(2 * pairs), give_us / (double)pairs);
  free(field);
  check(welkin_train_close(training));
  return 0;
}
