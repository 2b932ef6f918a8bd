// SPDX-License-Identifier: Apache-2.0
//
// C API of the NPU runtime: open a device, load a compiled program (.npu), give it inputs, run it,
// take its outputs. Strict C17, and C++11 and later.
//
//     struct npu_device *device;
//     struct npu_program *program;
//     struct npu_session *session;
//     npu_program_load("model.npu", &program);
//     npu_device_open(npu_simulator_ops(), NULL, &device);      // npu/simulator.h, or a driver's
//     table npu_session_new(device, program, &session); npu_session_write(session, NPU_INPUT, 0,
//     NPU_F32, x, sizeof x); npu_session_run(session, NULL); npu_session_read(session, NPU_OUTPUT,
//     0, NPU_F32, y, sizeof y);
//
// Ownership, once for all of it:
//  - What *_open, *_load, *_new returned is yours: end it with the matching *_close or *_free, in
//    reverse order of making. NULL is allowed there.
//  - Pointers that a function returns or stores in a struct are lent: they live as long as the
//  object
//    they were asked of.
//  - Pointers given to a function are lent for the call, unless it says "lent until ...".
//  - A status that is not NULL is yours: read it, then npu_status_free. On failure, out-parameters
//  that
//    are pointers are NULL.
// Threads: a device and everything made on it belong to one thread at a time; programs are read
// only and may be shared.
#ifndef NPU_NPU_H
#define NPU_NPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Grows when something is added; what is there keeps its meaning.
#define NPU_API_VERSION 1

#if defined(__GNUC__)
#define NPU_CHECKED __attribute__((warn_unused_result))
#else
#define NPU_CHECKED
#endif

/// Version of the library, "0.1.0".
const char *npu_version(void);

// ---- errors
// ----------------------------------------------------------------------------------------

/// NULL: success.
struct npu_error;
typedef struct npu_error *npu_status;

enum npu_error_code {
    NPU_ERROR_NONE = 0,
    NPU_ERROR_DIFFER,      // results differ
    NPU_ERROR_USAGE,       // a call that makes no sense
    NPU_ERROR_BAD_INPUT,   // a file or tensor is wrong
    NPU_ERROR_UNSUPPORTED, // valid, outside what this library does
    NPU_ERROR_NO_FIT,      // the device is too small
    NPU_ERROR_FAULT,       // the program broke a rule of the machine while it ran
    NPU_ERROR_IO,          // file or device
    NPU_ERROR_NO_MEMORY
};

/// NPU_ERROR_NONE for NULL.
enum npu_error_code npu_status_error(npu_status status);

/// Exit status for a program that ends with this outcome: 0 for NULL, 1..6 as npusim.
int npu_status_exit(npu_status status);

/// Message of the first fault without its notes; "" for NULL.
const char *npu_status_message(npu_status status);

/// All faults and notes, a line each, cut to `size` bytes with the final NUL. Returns the length of
/// the whole text, as snprintf.
size_t npu_status_text(npu_status status, char *text, size_t size);

void npu_status_free(npu_status status);

// ---- tensors
// ---------------------------------------------------------------------------------------

enum npu_dtype {
    NPU_DTYPE_NONE = 0,
    NPU_F32 = 1,
    NPU_F16 = 2,
    NPU_BF16 = 3,
    NPU_F8E4M3 = 4,
    NPU_F8E5M2 = 5,
    NPU_I4 = 8, // two to a byte, low nibble first
    NPU_I8 = 9,
    NPU_I16 = 10,
    NPU_I32 = 11,
    NPU_I64 = 12,
    NPU_U4 = 16,
    NPU_U8 = 17,
    NPU_U16 = 18,
    NPU_U32 = 19,
    NPU_BOOL = 24, // one byte, 0 or 1
    NPU_F64 = 30,
    NPU_U64 = 31
};

enum npu_role {
    NPU_INPUT = 1,
    NPU_OUTPUT = 2,
    NPU_STATE = 3 // kept from run to run: a key/value cache. Starts as the model says, else zero
};

enum { NPU_MAX_RANK = 8 };

/// A tensor of a program. Dense, C order, little-endian.
struct npu_tensor_info {
    const char *name;
    enum npu_role role;
    enum npu_dtype dtype;       // in the device's memory
    enum npu_dtype model_dtype; // as the model declares it
    int rank;                   // 0: a scalar
    int64_t dims[NPU_MAX_RANK];
    uint64_t elements;
    uint64_t bytes;      // in dtype
    int64_t index_limit; // values index something: 0..index_limit-1 are valid; 0: no such limit
};

/// "f16"; "?" for a code that is none.
const char *npu_dtype_name(enum npu_dtype dtype);

/// The type of a name, NPU_DTYPE_NONE when there is none such.
enum npu_dtype npu_dtype_parse(const char *name);

/// Bits of an element; 0 for a code that is none.
int npu_dtype_bits(enum npu_dtype dtype);

/// Bytes of `elements` elements, rounded up.
uint64_t npu_dtype_bytes(enum npu_dtype dtype, uint64_t elements);

/// Converts dense elements between types: floats among floats, rounding to nearest even; integers
/// and bool among themselves, where every value must fit. BAD_INPUT names the first that does not;
/// UNSUPPORTED between floats and integers. The buffers must not overlap and need no alignment.
NPU_CHECKED npu_status npu_convert(enum npu_dtype to, void *out, enum npu_dtype from,
                                   const void *in, uint64_t elements);

// ---- programs
// --------------------------------------------------------------------------------------

struct npu_program;

/// Loads and checks a program. IO, BAD_INPUT naming the damaged section, NO_MEMORY.
NPU_CHECKED npu_status npu_program_load(const char *path, struct npu_program **out);

/// The same from memory, lent until npu_program_free.
NPU_CHECKED npu_status npu_program_load_memory(const void *bytes, size_t size,
                                               struct npu_program **out);

void npu_program_free(struct npu_program *program);

const char *npu_program_name(const struct npu_program *program);
const char *npu_program_producer(const struct npu_program *program);
/// Name of the machine it was compiled for, and its whole description as YAML text.
const char *npu_program_target(const struct npu_program *program);
const char *npu_program_machine(const struct npu_program *program);
/// Device memory that a session of it takes.
uint64_t npu_program_dram_bytes(const struct npu_program *program);

/// Tensors are numbered from 0 within their role, in the order of the model.
size_t npu_program_tensor_count(const struct npu_program *program, enum npu_role role);

/// USAGE when `index` is not below the count.
NPU_CHECKED npu_status npu_program_tensor(const struct npu_program *program, enum npu_role role,
                                          size_t index, struct npu_tensor_info *out);

/// Number of a tensor by name. USAGE names the tensors there are.
NPU_CHECKED npu_status npu_program_find(const struct npu_program *program, enum npu_role role,
                                        const char *name, size_t *index);

/// Entry points; the first is the default. NULL when `index` is not below the count.
size_t npu_program_entry_count(const struct npu_program *program);
const char *npu_program_entry(const struct npu_program *program, size_t index);

// ---- devices
// ---------------------------------------------------------------------------------------

struct npu_device;

/// Table of a driver; npu/simulator.h has the simulated device's.
struct npu_device_ops;

/// Opens a device. `config` is what the driver documents; NULL: its defaults. IO, BAD_INPUT.
NPU_CHECKED npu_status npu_device_open(const struct npu_device_ops *ops, const void *config,
                                       struct npu_device **out);

/// Every session and queue on it must have been freed before.
void npu_device_close(struct npu_device *device);

const char *npu_device_name(const struct npu_device *device);

/// A number that the device counts.
struct npu_counter {
    const char *name; // "cycles"
    uint64_t value;
};

/// Stores at most `capacity` counters and returns how many there are.
size_t npu_device_counters(struct npu_device *device, struct npu_counter *out, size_t capacity);

// ---- sessions
// --------------------------------------------------------------------------------------

/// A program in a device's memory, with its own inputs, outputs and state.
struct npu_session;

/// How a run went.
struct npu_run_info {
    uint64_t start_cycle, end_cycle; // on the device's clock
    uint64_t busy_cycles;            // sum over the submissions
    uint64_t submissions;            // 1, unless the program was compiled to be run op by op
};

/// Puts the program into the device's memory; device and program must outlive the session.
/// Constants are not copied when the device can use the file's mapping. BAD_INPUT when the program
/// was compiled for a machine on which other programs are legal: each differing parameter is named.
/// NO_FIT, IO.
NPU_CHECKED npu_status npu_session_new(struct npu_device *device, const struct npu_program *program,
                                       struct npu_session **out);

/// Waits for what runs, and gives the memory back.
void npu_session_free(struct npu_session *session);

/// Selects the entry point of later runs; NULL: the default. USAGE names those there are.
NPU_CHECKED npu_status npu_session_set_entry(struct npu_session *session, const char *name);

/// Value that the program reads from doorbell `index` (0..15), such as a sequence length.
NPU_CHECKED npu_status npu_session_set_scalar(struct npu_session *session, unsigned index,
                                              uint64_t value);

/// Writes an input or state now, converted as npu_convert does. `bytes` must be that of the whole
/// tensor in `dtype`.
NPU_CHECKED npu_status npu_session_write(struct npu_session *session, enum npu_role role,
                                         size_t index, enum npu_dtype dtype, const void *data,
                                         size_t bytes);

/// Reads an output or state now, converted as npu_convert does.
NPU_CHECKED npu_status npu_session_read(struct npu_session *session, enum npu_role role,
                                        size_t index, enum npu_dtype dtype, void *data,
                                        size_t bytes);

/// Gives every state the value that it had when the session was made.
NPU_CHECKED npu_status npu_session_reset(struct npu_session *session);

/// Binds a buffer to an input: every later run begins by writing it. Lent until it is bound to
/// another (NULL: none) or the session is freed.
NPU_CHECKED npu_status npu_session_bind_input(struct npu_session *session, size_t index,
                                              enum npu_dtype dtype, const void *data, size_t bytes);

/// Binds a buffer to an output: every later run ends by filling it. Lent as above.
NPU_CHECKED npu_status npu_session_bind_output(struct npu_session *session, size_t index,
                                               enum npu_dtype dtype, void *data, size_t bytes);

/// Starts a run. USAGE when an input was never given (they are named) or a run has not been waited
/// for.
NPU_CHECKED npu_status npu_session_submit(struct npu_session *session);

/// Waits for the run and fills bound outputs; `info` may be NULL. FAULT when the program broke a
/// rule: the message names cycle, engine, instruction and layer.
NPU_CHECKED npu_status npu_session_wait(struct npu_session *session, struct npu_run_info *info);

/// Submits and waits.
NPU_CHECKED npu_status npu_session_run(struct npu_session *session, struct npu_run_info *info);

// ---- queues
// ----------------------------------------------------------------------------------------

/// Runs of several sessions of one device in the order given, without waiting in between.
struct npu_queue;

/// `depth`: runs that may be on their way, 1..4096.
NPU_CHECKED npu_status npu_queue_new(struct npu_device *device, size_t depth,
                                     struct npu_queue **out);

/// Waits for what runs. Sessions used must not have been freed.
void npu_queue_free(struct npu_queue *queue);

/// Starts a run; `job` numbers it from 1. USAGE when `depth` runs have not been waited for.
NPU_CHECKED npu_status npu_queue_submit(struct npu_queue *queue, struct npu_session *session,
                                        uint64_t *job);

/// Waits for a run and everything before it; each job once. As npu_session_wait.
NPU_CHECKED npu_status npu_queue_wait(struct npu_queue *queue, uint64_t job,
                                      struct npu_run_info *info);

/// Jobs not yet waited for.
size_t npu_queue_pending(const struct npu_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
