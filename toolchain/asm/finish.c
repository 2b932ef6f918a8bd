// SPDX-License-Identifier: Apache-2.0
//
// Completes an image after its text was read: machine, entry points with their launches, and the
// segments that were not written.

#include "runtime/base/hw_yaml.h"
#include "toolchain/asm/internal.h"

enum { PAGE_BYTES = 4096, LINE_BYTES = 64 };

// The machine: the caller's, the text's own description, or its target's preset; then .set.
static npu_status machine(struct asm_state *s, const struct asm_machine *given) {
    struct npu_program_image *m = &s->image;
    struct hw hw;
    if (given) {
        hw = *given->hw;
        m->target = given->name;
        str_clear(&s->yaml);
        s->have_hash = false;
    } else if (s->yaml.len) {
        NPU_TRY_NOTE(hw_parse(s->yaml.data, s->yaml.len, "description", &hw), "%s: .yaml",
                     s->where);
    } else {
        if (!m->target) m->target = "server";
        NPU_TRY_NOTE(hw_load(m->target, &hw), "%s: .target", s->where);
    }
    for (size_t i = 0; i < s->sets.len && !given; i++) {
        npu_status st = hw_set_text(&hw, s->sets.ptr[i], HW_SET_ALL);
        if (st) return npu_note(st, "%s: .set", s->where);
        str_clear(&s->yaml);
    }
    if (s->yaml.len == 0) hw_print_yaml(&hw, &s->yaml);
    NPU_TRY(str_status(&s->yaml));
    m->hw_yaml = arena_strdup(s->arena, str_text(&s->yaml));
    m->hw_program_hash = s->have_hash ? s->hash[0] : hw_hash(&hw, HW_PROGRAM);
    m->hw_timing_hash = s->have_hash ? s->hash[1] : hw_hash(&hw, HW_TIMING);
    return NULL;
}

static void entries(struct asm_state *s) {
    if (s->entries.len == 0) {
        struct npu_image_entry *e = ARENA_NEW(s->arena, struct npu_image_entry);
        e->name = "main";
        const struct asm_entry row = {e};
        VEC_PUSH(s->arena, &s->entries, row);
    }
    struct npu_image_entry *rows = ARENA_ARRAY(s->arena, struct npu_image_entry, s->entries.len);
    struct npu_image_launch *launches =
        ARENA_ARRAY(s->arena, struct npu_image_launch, s->launches.len);
    size_t at = 0;
    for (size_t i = 0; i < s->entries.len; i++) {
        rows[i] = *s->entries.ptr[i].row;
        rows[i].launches = launches + at;
        for (; at < s->launches.len && s->launches.ptr[at].entry == i; at++) {
            launches[at] = *s->launches.ptr[at].row;
            rows[i].nlaunches++;
        }
    }
    s->image.entries = rows;
    s->image.nentries = s->entries.len;
}

static uint64_t round_up(uint64_t v, uint64_t to) {
    return (v + to - 1) / to * to;
}

// A segment over the tensors that `state` selects. Returns its end, `end` when there are none.
static uint64_t cover_tensors(struct asm_state *s, bool state, uint64_t end) {
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < s->tensors.len; i++) {
        const struct npu_image_tensor *t = &s->tensors.ptr[i];
        if ((t->role == CONTAINER_ROLE_STATE) != state || t->bytes == 0) continue;
        if (t->dram_offset > UINT64_C(1) << 48 || t->bytes > UINT64_C(1) << 48) continue;
        if (t->dram_offset < low) low = t->dram_offset;
        if (t->dram_offset + t->bytes > high) high = t->dram_offset + t->bytes;
    }
    if (high == 0) return end;
    low = low / LINE_BYTES * LINE_BYTES;
    const struct npu_image_segment g = {
        .kind = state ? CONTAINER_SEGMENT_STATE : CONTAINER_SEGMENT_IO,
        .dram_offset = low,
        .bytes = high - low,
        .alignment = LINE_BYTES,
    };
    VEC_PUSH(s->arena, &s->segments, g);
    return high > end ? high : end;
}

static void segments(struct asm_state *s) {
    if (s->segments.len == 0) {
        uint64_t end = cover_tensors(s, false, 0);
        const size_t first = s->segments.len;
        end = cover_tensors(s, true, end);
        if (first == 1 && s->segments.len == 2 &&
            s->segments.ptr[1].dram_offset < s->segments.ptr[0].dram_offset) {
            const struct npu_image_segment io = s->segments.ptr[0];
            s->segments.ptr[0] = s->segments.ptr[1];
            s->segments.ptr[1] = io;
        }
        const struct npu_image_segment g = {.kind = CONTAINER_SEGMENT_CODE,
                                            .dram_offset = round_up(end, PAGE_BYTES),
                                            .bytes = s->code.len,
                                            .alignment = LINE_BYTES};
        VEC_PUSH(s->arena, &s->segments, g);
    }
    uint64_t end = 0;
    for (size_t i = 0; i < s->segments.len; i++) {
        struct npu_image_segment *g = &s->segments.ptr[i];
        if (g->kind == CONTAINER_SEGMENT_CODE && !s->code_bytes_given) g->bytes = s->code.len;
        if (g->bytes <= UINT64_C(1) << 48 && g->dram_offset <= UINT64_C(1) << 48 &&
            g->dram_offset + g->bytes > end)
            end = g->dram_offset + g->bytes;
    }
    if (!s->have_dram) s->image.dram_bytes = round_up(end, PAGE_BYTES);
}

npu_status asm_finish(struct asm_state *s, const struct asm_machine *given) {
    struct npu_program_image *m = &s->image;
    NPU_TRY(machine(s, given));
    if (!m->name) m->name = "program";
    if (!m->producer) m->producer = "npuc";
    if (!m->dtype_mode) m->dtype_mode = "auto";
    entries(s);
    segments(s);
    m->tensors = s->tensors.ptr;
    m->ntensors = s->tensors.len;
    m->segments = s->segments.ptr;
    m->nsegments = s->segments.len;
    m->code = (struct span){s->code.ptr, s->code.len};
    m->tags = s->tags.ptr;
    m->ntags = s->tags.len;
    m->spans = s->spans.ptr;
    m->nspans = s->spans.len;
    m->buffers = s->buffers.ptr;
    m->nbuffers = s->buffers.len;
    m->stats = s->stats.ptr;
    m->nstats = s->stats.len;
    if (s->have_record) {
        s->record.options = s->options.ptr;
        s->record.noptions = s->options.len;
        s->record.results = s->results.ptr;
        s->record.nresults = s->results.len;
        m->record = arena_copy(s->arena, &s->record, sizeof s->record);
    }
    m->weights = s->weights.ptr;
    m->nweights = s->weights.len;
    return NULL;
}
