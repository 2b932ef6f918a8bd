// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/out.h"

#include <string.h>
#include <zlib.h>

#include "runtime/base/alloc.h"

#define ENOUGH 65536

struct trace_out {
    struct file_out *file;
    struct str text;
    z_stream z;
    bool gzip;
    npu_status failed;
    uint8_t packed[ENOUGH];
};

npu_status trace_out_open(const char *path, struct trace_out **out) {
    struct trace_out *o = base_alloc(sizeof *o);
    if (!o) return npu_fail(NO_MEMORY, "no memory for writing '%s'", path);
    const size_t n = strlen(path);
    o->gzip = n > 3 && strcmp(path + n - 3, ".gz") == 0;
    // 15 + 16: the largest window, with gzip's header.
    if (o->gzip && deflateInit2(&o->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        base_free(o);
        return npu_fail(NO_MEMORY, "no memory for compressing '%s'", path);
    }
    npu_status st = file_out_open(path, &o->file);
    if (st) {
        if (o->gzip) deflateEnd(&o->z);
        base_free(o);
        return st;
    }
    *out = o;
    return NULL;
}

struct str *trace_out_text(struct trace_out *o) {
    return &o->text;
}

static void pass_on(struct trace_out *o, int flush) {
    if (!o->failed) o->failed = str_status(&o->text);
    if (!o->failed && !o->gzip && o->text.len)
        o->failed =
            file_out_write(o->file, (struct span){(const uint8_t *)o->text.data, o->text.len});
    if (o->gzip) {
        o->z.next_in = (Bytef *)o->text.data;
        o->z.avail_in = (uInt)o->text.len;
        do {
            o->z.next_out = o->packed;
            o->z.avail_out = sizeof o->packed;
            deflate(&o->z, flush);
            const size_t n = sizeof o->packed - o->z.avail_out;
            if (!o->failed && n) o->failed = file_out_write(o->file, (struct span){o->packed, n});
        } while (o->z.avail_out == 0);
    }
    str_clear(&o->text);
}

void trace_out_flush(struct trace_out *o) {
    if (o->text.len >= ENOUGH) pass_on(o, Z_NO_FLUSH);
}

void trace_out_fail(struct trace_out *o, npu_status status) {
    o->failed = npu_status_join(o->failed, status);
}

npu_status trace_out_close(struct trace_out *o) {
    pass_on(o, Z_FINISH);
    if (o->gzip) deflateEnd(&o->z);
    npu_status st = o->failed;
    if (st)
        file_out_abort(o->file);
    else
        st = file_out_commit(o->file);
    str_free(&o->text);
    base_free(o);
    return st;
}
