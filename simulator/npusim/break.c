// SPDX-License-Identifier: Apache-2.0
// Places to stop at: taking the option apart, looking them up in the program, and what is said when
// one is reached.
#include "simulator/npusim/break.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/text.h"
#include "simulator/npusim/dump.h"
#include "simulator/npusim/writes.h"

static const struct {
    const char *word;
    enum core_where_kind kind;
    bool counted; // takes #K
} kinds[] = {
    {"cycle", CORE_AT_CYCLE, false}, {"tag", CORE_AT_TAG, true},    {"layer", CORE_AT_TAG, true},
    {"pc", CORE_AT_PC, true},        {"insn", CORE_AT_INSN, false}, {"fault", CORE_AT_FAULT, false},
};

struct place {
    size_t kind; // of kinds
    uint64_t value, nth;
    bool done;
    const char *name; // layer, in `buffer`
};

static npu_status refuse(const char *text, const char *why) {
    return npu_fail(USAGE,
                    "--break %s: %s; expected cycle:N, tag:T, layer:NAME, pc:GRANULE, insn:SEQ or "
                    "fault; /done behind a tag, layer, pc or insn: when it is done; #K behind a "
                    "tag, layer or pc: the K-th instruction that fits",
                    text, why);
}

// A "#K" at the end is cut off.
static bool take_nth(char *text, uint64_t *nth) {
    char *hash = strrchr(text, '#');
    *nth = 1;
    if (!hash || !hash[1] || strspn(hash + 1, "0123456789") != strlen(hash + 1)) return true;
    *hash = '\0';
    return text_parse_u64(hash + 1, nth) && *nth > 0;
}

// A "/done" at the end is cut off.
static bool take_done(char *text) {
    const size_t n = strlen(text);
    if (n < 5 || strcmp(text + n - 5, "/done") != 0) return false;
    text[n - 5] = '\0';
    return true;
}

static npu_status parse(const char *text, char *buffer, struct place *out) {
    char *value = strchr(buffer, ':');
    if (value) *value++ = '\0';
    for (out->kind = 0; out->kind < sizeof kinds / sizeof *kinds; out->kind++)
        if (!strcmp(buffer, kinds[out->kind].word)) break;
    if (out->kind == sizeof kinds / sizeof *kinds) return refuse(text, "no such place");
    if (kinds[out->kind].kind == CORE_AT_FAULT)
        return value ? refuse(text, "fault takes no value") : NULL;
    if (!value || !*value) return refuse(text, "a value is missing");
    out->nth = 1;
    if (kinds[out->kind].counted && !take_nth(value, &out->nth))
        return refuse(text, "K counts from 1");
    if (kinds[out->kind].kind != CORE_AT_CYCLE) out->done = take_done(value);
    if (out->done && out->nth > 1 && kinds[out->kind].kind == CORE_AT_TAG)
        return refuse(text, "a layer is done once");
    out->name = value;
    if (strcmp(buffer, "layer") != 0 && !text_parse_u64(value, &out->value))
        return refuse(text, "not a number from 0 on");
    if (kinds[out->kind].kind == CORE_AT_TAG && out->value > UINT32_MAX)
        return refuse(text, "tags have 32 bits");
    return NULL;
}

npu_status break_check(const char *text) {
    struct place p = {0};
    const size_t n = strlen(text) + 1;
    char *buffer = base_alloc(n);
    if (!buffer) return npu_fail(NO_MEMORY, "--break");
    memcpy(buffer, text, n);
    npu_status st = parse(text, buffer, &p);
    base_free(buffer);
    return st;
}

// ---- in the program -----------------------------------------------------------------------------

static bool is_layer(const struct npu_image_tag *t, const char *name) {
    if (!strcmp(t->layer, name)) return true;
    for (size_t i = 0; i < t->nnodes; i++)
        if (!strcmp(t->nodes[i], name)) return true;
    return false;
}

static npu_status find_layer(struct npusim *s, const char *text, const char *name,
                             struct core_where *w) {
    const struct npu_program_image *image = npu_program_image_of(s->program);
    uint32_t *tags = ARENA_ARRAY(s->a, uint32_t, image->ntags + 1);
    const char **names = ARENA_ARRAY(s->a, const char *, image->ntags + 1);
    for (size_t i = 0; i < image->ntags; i++) {
        names[i] = image->tags[i].layer;
        if (is_layer(&image->tags[i], name)) tags[w->ntag++] = image->tags[i].tag;
    }
    w->tag = tags;
    if (w->ntag) return NULL;
    const char *near = text_did_you_mean(name, names, image->ntags);
    return npu_fail(USAGE, "--break %s: the program has no layer and no node of that name%s%s%s",
                    text, near ? "; did you mean " : "", near ? near : "",
                    image->ntags ? "" : ": it has no names at all");
}

static npu_status find_pc(struct npusim *s, const char *text, uint64_t pc) {
    const struct span code = npu_program_image_of(s->program)->code;
    const uint64_t n = code.size / ISA_GRANULE_BYTES;
    uint64_t before = 0;
    if (pc >= n)
        return npu_fail(USAGE, "--break %s: the code has granules 0 to %" PRIu64, text, n - 1);
    for (uint64_t g = 0; g <= pc;) {
        struct isa_insn in;
        const char *why;
        const int length = isa_decode(code.data + g * ISA_GRANULE_BYTES,
                                      code.size - (size_t)(g * ISA_GRANULE_BYTES), &in, &why);
        if (g == pc && length > 0) return NULL;
        before = g;
        g += length > 0 ? (uint64_t)length : 1;
    }
    return npu_fail(USAGE,
                    "--break %s: no instruction starts at that granule; one does at %" PRIu64, text,
                    before);
}

npu_status breaks_begin(struct npusim *s, struct breaks *b) {
    const int n = s->o->stop.n;
    b->where = ARENA_ARRAY(s->a, struct core_where, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        const char *text = s->o->stop.item[i].value;
        struct place p = {0};
        NPU_TRY(parse(text, arena_strdup(s->a, text), &p));
        struct core_where *w = &b->where[b->n++];
        *w = (struct core_where){.kind = kinds[p.kind].kind,
                                 .value = p.value,
                                 .done = p.done,
                                 .nth = p.nth};
        uint32_t *tag = ARENA_NEW(s->a, uint32_t);
        *tag = (uint32_t)p.value;
        w->tag = tag;
        w->ntag = !strcmp(kinds[p.kind].word, "tag");
        if (!strcmp(kinds[p.kind].word, "layer")) {
            // A name may end in #K itself.
            const char *whole = strchr(text, ':') + 1;
            npu_status st = find_layer(s, text, whole, w);
            if (!st) {
                w->nth = 1;
                w->done = false;
            }
            npu_status_free(st);
            if (!w->ntag) NPU_TRY(find_layer(s, text, p.name, w));
        }
        if (w->kind == CORE_AT_PC) NPU_TRY(find_pc(s, text, w->value));
    }
    NPU_TRY(dumps_check(s));
    sim_device_stop_at(sim_device_of(s->device), b->where, b->n);
    return NULL;
}

// ---- what is shown ------------------------------------------------------------------------------

static void head(struct npusim *s, const struct core_stopped *at, struct str *out) {
    str_printf(out, "stopped at the end of cycle %" PRIu64 ", --break %s", at->cycle,
               s->o->stop.item[at->where].value);
    if (at->seq != TRACE_NO_SEQ) str_printf(out, ": instruction %" PRIu64, at->seq);
    const uint64_t jobs = sim_device_totals(sim_device_of(s->device))->jobs;
    if (jobs > 1) str_printf(out, ", in submission %" PRIu64, jobs - 1);
    str_putc(out, '\n');
}

static void not_reached(const struct npusim *s, const struct breaks *b, bool stopped) {
    for (size_t i = 0; i < b->n && !stopped; i++)
        if (b->where[i].kind != CORE_AT_FAULT)
            fprintf(stderr, "npusim: --break %s was not reached in %" PRIu64 " cycles\n",
                    s->o->stop.item[i].value, sim_device_totals(sim_device_of(s->device))->cycles);
}

npu_status breaks_show(struct npusim *s, const struct breaks *b, bool faulted, bool *stopped) {
    const struct sim_device *d = sim_device_of(s->device);
    const struct core_stopped *at = sim_device_stopped(d);
    struct str text = {0};
    *stopped = at != NULL;
    not_reached(s, b, *stopped);
    if (at) {
        struct exec_state *state = base_alloc(sizeof *state);
        if (!state) return npu_fail(NO_MEMORY, "the machine's state");
        sim_device_state(d, state);
        head(s, at, &text);
        state_print(&text, npu_program_image_of(s->program), sim_device_hw(d)->cp_queue_depth,
                    state);
        base_free(state);
        npu_status st = str_status(&text);
        if (!st) fputs(str_text(&text), stdout);
        str_free(&text);
        NPU_TRY(st);
        if (s->o->output.n || s->o->outputs || s->o->expect.n || s->o->expects)
            fprintf(stderr, "npusim: the run was stopped: outputs are neither written nor "
                            "compared\n");
    }
    if (!faulted || at) return dumps_show(s);
    if (s->o->dump.n)
        fprintf(stderr, "npusim: the run ended with a fault; --break fault shows what --dump asks "
                        "for there\n");
    return NULL;
}
