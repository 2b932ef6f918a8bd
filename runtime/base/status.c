// SPDX-License-Identifier: Apache-2.0
//
// A status is a chain: a note points at what it annotates (`inner`), and the head of joined
// statuses points at the next one (`next`, with `last` kept in the head so that gathering n faults
// is O(n)). Memory for a status may itself run out: a static status stands for that, and a note
// that cannot be stored is dropped rather than losing the fault.

#include "runtime/base/status.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/str.h"

struct npu_error {
    enum npu_code code;
    int line;
    bool is_static; // not allocated; marked here and not told by address, because a program may
                    // hold this library twice (libnpu and a driver)
    const char *file;
    struct npu_error *inner; // what this note annotates; NULL for a fault
    struct npu_error *next;  // the next joined status
    struct npu_error *last;  // in the head of a joined list: its end; NULL for a list of one
    const char *text;        // behind the struct, in the same allocation
};

static struct npu_error no_memory = {.code = NPU_NO_MEMORY,
                                     .line = __LINE__,
                                     .is_static = true,
                                     .file = __FILE__,
                                     .text = "out of memory"};

static const struct {
    int exit;
    const char *label;
} codes[] = {
    {0, "ok"},
#define NPU_CODE(NAME, exit, label, meaning) {exit, label},
#include "runtime/base/status.def"
};

static bool show_source;

void npu_status_show_source(bool on) {
    show_source = on;
}

__attribute__((format(printf, 4, 0))) static struct npu_error *make(const char *file, int line,
                                                                    enum npu_code code,
                                                                    const char *format,
                                                                    va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t size = length > 0 ? (size_t)length + 1 : 1;
    struct npu_error *e = base_alloc(sizeof *e + size);
    if (!e) return NULL;
    e->code = code;
    e->file = file;
    e->line = line;
    char *text = (char *)(e + 1);
    (void)vsnprintf(text, size, format, args);
    e->text = text;
    return e;
}

npu_status npu_fail_at(const char *file, int line, enum npu_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    struct npu_error *e = make(file, line, code, format, args);
    va_end(args);
    return e ? e : &no_memory;
}

npu_status npu_note_at(const char *file, int line, npu_status status, const char *format, ...) {
    if (!status) return NULL;
    va_list args;
    va_start(args, format);
    struct npu_error *e = make(file, line, status->code, format, args);
    va_end(args);
    if (!e) return status;
    e->inner = status;
    return e;
}

npu_status npu_status_join(npu_status a, npu_status b) {
    if (!a || a->is_static) {
        if (!a) return b;
        npu_status_free(b);
        return a;
    }
    if (!b) return a;
    struct npu_error *end = a->last ? a->last : a;
    if (b->is_static) { // cannot be linked: it is shared, and being out of memory outranks the rest
        npu_status_free(a);
        return b;
    }
    end->next = b;
    a->last = b->last ? b->last : b;
    return a;
}

enum npu_code npu_status_code(npu_status status) {
    return status ? status->code : NPU_OK;
}

int npu_status_exit(npu_status status) {
    return codes[npu_status_code(status)].exit;
}

const char *npu_status_message(npu_status status) {
    if (!status) return "";
    while (status->inner)
        status = status->inner;
    return status->text;
}

static void print_line(const struct npu_error *e, struct str *out) {
    str_shown_lines(out, e->text);
    if (show_source) str_printf(out, "  [%s, %s:%d]", codes[e->code].label, e->file, e->line);
    str_printf(out, "\n");
}

// The faults under `e` first, then the note that `e` itself may be: innermost to outermost.
static void print_chain(const struct npu_error *e, const char *program, struct str *out) {
    for (; e; e = e->next) {
        if (e->inner) {
            print_chain(e->inner, program, out);
            str_puts(out, "  in: ");
        } else {
            str_printf(out, "%s%serror: ", program ? program : "", program ? ": " : "");
        }
        print_line(e, out);
    }
}

void npu_status_print(npu_status status, const char *program, struct str *out) {
    print_chain(status, program, out);
}

int npu_status_report(npu_status status, const char *program) {
    int exit_status = npu_status_exit(status);
    if (status) {
        struct str out = {0};
        npu_status_print(status, program, &out);
        if (out.failed) { // no memory left to render into: the bare message still gets out
            fprintf(stderr, "%s: error: %s\n", program ? program : "npu",
                    npu_status_message(status));
        } else {
            fputs(str_text(&out), stderr);
        }
        str_free(&out);
        npu_status_free(status);
    }
    return exit_status;
}

void npu_status_free(npu_status status) {
    while (status && !status->is_static) {
        struct npu_error *next = status->next;
        // A chain of notes is freed in this loop too: the inner list is put in front of the rest.
        if (status->inner && !status->inner->is_static) {
            struct npu_error *end = status->inner->last ? status->inner->last : status->inner;
            end->next = next;
            next = status->inner;
        }
        base_free(status);
        status = next;
    }
}

void npu_bug_at(const char *file, int line, const char *function, const char *what) {
    fprintf(stderr, "%s:%d: %s: this is a bug in npuc: '%s' does not hold\n", file, line, function,
            what);
    fflush(NULL);
    abort();
}
