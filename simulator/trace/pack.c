// SPDX-License-Identifier: Apache-2.0
#include "simulator/trace/pack.h"

#include <string.h>
#include <zlib.h>

#include "runtime/base/alloc.h"

#define CHUNK 16384

struct trace_pack {
    struct trace_out *out;
    z_stream z;
    uint8_t raw[CHUNK], packed[CHUNK + 3];
    size_t nraw, ncarry; // ncarry: bytes at the start of packed that made no group of three
};

npu_status trace_pack_open(struct trace_out *out, struct trace_pack **pack) {
    struct trace_pack *p = base_alloc(sizeof *p);
    // Level 3: columns of small numbers get little smaller above it, but three times as slow.
    if (!p || deflateInit(&p->z, 3) != Z_OK) {
        base_free(p);
        return npu_fail(NO_MEMORY, "no memory for packing a trace");
    }
    p->out = out;
    *pack = p;
    return NULL;
}

static void group(char *to, const uint8_t *from) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    to[0] = digit[from[0] >> 2];
    to[1] = digit[(from[0] & 3) << 4 | from[1] >> 4];
    to[2] = digit[(from[1] & 15) << 2 | from[2] >> 6];
    to[3] = digit[from[2] & 63];
}

// Writes packed[0 .. n) in groups of three; the rest waits, or is padded at the end.
static void text(struct trace_pack *p, size_t n, bool last) {
    struct str *s = trace_out_text(p->out);
    char line[CHUNK / 3 * 4 + 8];
    size_t at = 0, len = 0;
    for (; at + 3 <= n; at += 3, len += 4)
        group(line + len, p->packed + at);
    if (last && at < n) {
        uint8_t rest[3] = {0};
        memcpy(rest, p->packed + at, n - at);
        group(line + len, rest);
        memset(line + len + 1 + (n - at), '=', 3 - (n - at));
        len += 4;
        at = n;
    }
    p->ncarry = n - at;
    memmove(p->packed, p->packed + at, p->ncarry);
    str_append(s, line, len);
    trace_out_flush(p->out);
}

static void pass_on(struct trace_pack *p, int flush) {
    p->z.next_in = p->raw;
    p->z.avail_in = (uInt)p->nraw;
    do {
        p->z.next_out = p->packed + p->ncarry;
        p->z.avail_out = CHUNK;
        deflate(&p->z, flush);
        const size_t n = p->ncarry + CHUNK - p->z.avail_out;
        text(p, n, flush == Z_FINISH && p->z.avail_out != 0);
    } while (p->z.avail_out == 0);
    p->nraw = 0;
}

void trace_pack_bytes(struct trace_pack *p, const void *bytes, size_t size) {
    const uint8_t *from = bytes;
    while (size) {
        const size_t n = size < CHUNK - p->nraw ? size : CHUNK - p->nraw;
        memcpy(p->raw + p->nraw, from, n);
        p->nraw += n;
        from += n;
        size -= n;
        if (p->nraw == CHUNK) pass_on(p, Z_NO_FLUSH);
    }
}

void trace_pack_number(struct trace_pack *p, uint64_t value) {
    if (p->nraw + 10 > CHUNK) pass_on(p, Z_NO_FLUSH);
    for (; value > 127; value >>= 7)
        p->raw[p->nraw++] = (uint8_t)(value | 128);
    p->raw[p->nraw++] = (uint8_t)value;
}

void trace_pack_signed(struct trace_pack *p, int64_t value) {
    const uint64_t u = (uint64_t)value << 1;
    trace_pack_number(p, value < 0 ? ~u : u);
}

void trace_pack_close(struct trace_pack *p) {
    pass_on(p, Z_FINISH);
    deflateEnd(&p->z);
    base_free(p);
}
