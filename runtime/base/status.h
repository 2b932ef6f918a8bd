// SPDX-License-Identifier: Apache-2.0
//
// Outcome of everything that can fail through no fault of ours. NULL is success; otherwise a code,
// a message, the notes added on the way up and, when faults were gathered, the other faults.
//
// A message says what was found; notes say where (node, tensor, file and line); the message ends
// with what would be accepted. A status is owned by whoever holds it: return it, note it, join it,
// report it or free it, once.
//
//     NPU_TRY(read_header(f, &h));
//     NPU_TRY_NOTE(import(node), "node '%s' (%s)", node->name, node->op);
//     if (h.version > 3) return npu_fail(BAD_INPUT, "version %d, at most 3 is known", h.version);
#ifndef RUNTIME_BASE_STATUS_H
#define RUNTIME_BASE_STATUS_H

#include <stdbool.h>

struct str;
struct npu_error;
typedef struct npu_error *npu_status;

enum npu_code {
    NPU_OK,
#define NPU_CODE(NAME, exit, label, meaning) NPU_##NAME,
#include "runtime/base/status.def"
    NPU_CODE_COUNT
};

#define NPU_MUST_USE __attribute__((warn_unused_result))

/// New status: npu_fail(BAD_INPUT, "rank %d, at most 8", rank). The code is written without NPU_.
#define npu_fail(code, ...) npu_fail_at(__FILE__, __LINE__, NPU_##code, __VA_ARGS__)

#ifdef __clang_analyzer__ // the analyser follows a failure only when it knows that it is not NULL
#undef npu_fail
#define npu_fail(code, ...) npu_never_null(npu_fail_at(__FILE__, __LINE__, NPU_##code, __VA_ARGS__))
static inline npu_status npu_never_null(npu_status status) {
    if (!status) __builtin_unreachable();
    return status;
}
#endif

/// Adds where it happened to a failed status, and returns it: npu_note(st, "tensor '%s'", name).
/// NULL stays NULL.
#define npu_note(status, ...) npu_note_at(__FILE__, __LINE__, (status), __VA_ARGS__)

/// Returns from the calling function when the call failed.
#define NPU_TRY(call)                  \
    do {                               \
        npu_status npu_try_ = (call);  \
        if (npu_try_) return npu_try_; \
    } while (0)

/// The same, adding a note: NPU_TRY_NOTE(load(path), "reading %s", path).
#define NPU_TRY_NOTE(call, ...)                                                      \
    do {                                                                             \
        npu_status npu_try_ = (call);                                                \
        if (npu_try_) return npu_note_at(__FILE__, __LINE__, npu_try_, __VA_ARGS__); \
    } while (0)

/// Behind npu_fail: the same with the code as a value. Never returns NULL.
NPU_MUST_USE npu_status npu_fail_at(const char *file, int line, enum npu_code code,
                                    const char *format, ...)
    __attribute__((returns_nonnull, format(printf, 4, 5)));

/// Behind npu_note.
NPU_MUST_USE npu_status npu_note_at(const char *file, int line, npu_status status,
                                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/// Gathers two outcomes, each of which may be NULL, into one; the code is that of `a` if it failed.
NPU_MUST_USE npu_status npu_status_join(npu_status a, npu_status b);

/// NPU_OK for NULL.
enum npu_code npu_status_code(npu_status status);

/// Exit status of a program that ends with this outcome (CLI contract): 0 for NULL.
int npu_status_exit(npu_status status);

/// Message of the first fault, without notes; "" for NULL. Lives as long as the status.
const char *npu_status_message(npu_status status);

/// Appends every fault as lines "PROGRAM: error: MESSAGE" and "  in: NOTE"; nothing for NULL.
/// `program` may be NULL.
void npu_status_print(npu_status status, const char *program, struct str *out);

/// Prints to stderr, frees, and returns the exit status.
int npu_status_report(npu_status status, const char *program);

/// Frees with all notes and joined faults. NULL is allowed.
void npu_status_free(npu_status status);

/// Whether printed messages show the place in our source and the label of the code (-v). Off at
/// first.
void npu_status_show_source(bool on);

/// Ends the program because of a mistake of ours, not of the user's: "this is a bug in npuc".
/// Always on.
#define NPU_ASSERT(condition) \
    ((condition) ? (void)0 : npu_bug_at(__FILE__, __LINE__, __func__, #condition))

/// Behind NPU_ASSERT: prints and aborts.
_Noreturn void npu_bug_at(const char *file, int line, const char *function, const char *what);

#endif
