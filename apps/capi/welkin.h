/* SPDX-License-Identifier: Apache-2.0
   Welkin inside of a C, C++ or Fortran program: a trained model is opened, fields are set by name, it makes a step, and fields
   are read back; or a model is trained on pairs of fields that the program hands over. Link with -lwelkin_c alone: welkin_open()
   and welkin_train_open() find torch 2.11.0 as the program `welkin` does (WELKIN_TORCH, the active virtual environment, python3)
   and load it then. No exception comes out of a function, and none is called back. Functions may be called from any thread; calls
   for one model, or one training, wait for each other. */
#ifndef WELKIN_H
#define WELKIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WELKIN_API __attribute__((visibility("default")))

/* The exit codes of `welkin`: the kinds of errors. */
typedef enum welkin_status {
  WELKIN_OK = 0,
  WELKIN_FAILED = 1,
  WELKIN_USAGE = 2,
  WELKIN_DATA = 3,
  WELKIN_COMM = 4,
  WELKIN_CHECKPOINT = 5,
  WELKIN_FULL = 100, /* no error: the buffer of pairs is still full */
  WELKIN_OVER = 101  /* no error: the run has made all of its steps and takes no more pairs */
} welkin_status;

typedef enum welkin_type { WELKIN_FLOAT32 = 0, WELKIN_FLOAT64 = 1 } welkin_type;
typedef enum welkin_side { WELKIN_INPUT = 0, WELKIN_TARGET = 1 } welkin_side;

typedef struct welkin_model welkin_model; /* opaque; made by welkin_open, ended by welkin_close */

/* The text of the last error of this thread: "[component] what: name=value. Remedy." Never null; valid until its next call. */
WELKIN_API const char* welkin_last_error(void);

/* Opens a checkpoint of the run in `run_folder`. `options` are flags of `welkin predict` with blanks between, or null:
   "--checkpoint newest --device cpu --data_root '/my era5'"; quotes of either kind hold blanks together. The run's data set is
   opened too: it has names, units and normalisation. `*model` is null where it is not opened. */
WELKIN_API welkin_status welkin_open(const char* run_folder, const char* options, welkin_model** model);

/* Null is allowed. No other call may be using the model. */
WELKIN_API void welkin_close(welkin_model* model);

/* The channels of the inputs or targets, from 0; a name or unit is null behind the last, and lives as long as the model. */
WELKIN_API int welkin_num_channels(const welkin_model* model, welkin_side side);
WELKIN_API const char* welkin_channel_name(const welkin_model* model, welkin_side side, int channel);
WELKIN_API const char* welkin_channel_unit(const welkin_model* model, welkin_side side, int channel);

/* The dims of one field, 2 (H, W) or 3 (D, H, W); returns how many. */
WELKIN_API int welkin_shape(const welkin_model* model, int64_t shape[3]);

/* Copies a field in, in the units of the run's files; converts and normalises on the way, in one pass. WELKIN_USAGE for values
   that are not finite in float32 (NaN alone is allowed, where the run's nan_policy fills it), and for those that have no
   logarithm where the run takes one. `strides`: elements
   between neighbours along each dim; null: the last dim runs fastest. A Fortran array a(W, H) needs none; a(H, W) has {1, H}. */
WELKIN_API welkin_status welkin_set_field(welkin_model* model, const char* channel, const void* values, welkin_type type,
                                          const int64_t* strides);

/* Makes the targets of the inputs, all of which have been set. */
WELKIN_API welkin_status welkin_step(welkin_model* model);

/* Copies a target of the last step, or an input that was set, out. */
WELKIN_API welkin_status welkin_get_field(const welkin_model* model, const char* channel, void* values, welkin_type type,
                                          const int64_t* strides);

/* The targets of the last step become the inputs of the next; inputs that are not predicted stay. WELKIN_USAGE where the run
   clips a channel, takes its logarithm or normalises it as an input otherwise than as a target. */
WELKIN_API welkin_status welkin_advance(welkin_model* model);

/* Training on pairs of the caller's. A thread of the run draws from a bounded buffer of those that were handed over, and the
   caller waits where it is full. A process either trains or steps with models. */

typedef struct welkin_training welkin_training; /* opaque; made by welkin_train_open, ended by welkin_train_close */

/* Progress of a run. Losses are those of the last validation, NaN before it. */
typedef struct welkin_progress {
  int64_t step, total_steps, epoch; /* steps that were made, those of the whole run; the epoch counts from 1 */
  int64_t pairs;                    /* handed over */
  double train_loss, valid_loss;
  double waited_seconds; /* of welkin_train_give, for a place in the buffer */
  int is_running;
} welkin_progress;

/* `options` are flags of `welkin train`, as those of welkin_open(): "--yaml_config online.yaml --config run --device cpu". The
   configuration says dataset: online, the names of in_channels and out_channels, and the model. */
WELKIN_API welkin_status welkin_train_open(const char* options, welkin_training** training);

/* Before the first pair: the unit of a channel (null or empty: not known), and the mean and deviation by which it is normalised,
   of values after clip and logarithm. A deviation of 0: mean and deviation are those of the first pairs. */
WELKIN_API welkin_status welkin_train_set_channel(welkin_training* training, const char* channel, const char* unit, double mean,
                                                  double deviation);

/* Before the first pair: the place of each row (from -90 to 90) and each column (from -360 to 720) in degrees, which makes the
   grid one of the globe. */
WELKIN_API welkin_status welkin_train_set_grid(welkin_training* training, const double* latitude, const double* longitude);

/* The dims of one field, as welkin_shape(). */
WELKIN_API int welkin_train_shape(const welkin_training* training, int64_t shape[3]);

/* Copies a channel of the next pair in; as welkin_set_field(). */
WELKIN_API welkin_status welkin_train_set_field(welkin_training* training, welkin_side side, const char* channel,
                                                const void* values, welkin_type type, const int64_t* strides);

/* Hands over the pair, all of whose channels are set, and begins the next one. Waits for at most `milliseconds` where the buffer
   is full, for ever below zero; WELKIN_FULL if it still is, and the pair is kept. What went wrong in the run is returned here. */
WELKIN_API welkin_status welkin_train_give(welkin_training* training, int64_t milliseconds);

/* Waits for no other call. */
WELKIN_API welkin_status welkin_train_progress(const welkin_training* training, welkin_progress* progress);

/* The run's folder, for welkin_open() afterwards; lives as long as the training. */
WELKIN_API const char* welkin_train_folder(const welkin_training* training);

/* No more pairs will come: the run uses up those that it has, validates, saves and ends. The training is gone afterwards,
   whatever is returned. Null is allowed. */
WELKIN_API welkin_status welkin_train_close(welkin_training* training);

#ifdef __cplusplus
}
#endif
#endif
