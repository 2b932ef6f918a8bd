// SPDX-License-Identifier: Apache-2.0
// --emit: the stages as text; --info: the kernels of a program, one line each.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/str.h"
#include "toolchain/asm/asm.h"
#include "toolchain/npuc/compile.h"

static void emit_plan(const struct tile_program *p, struct str *out) {
    str_printf(out,
               "spm   %lld of %lld bytes (bound %lld)\npsum  %lld of %lld bytes\ndram  %lld bytes, "
               "scratch %lld (bound %lld)\n\n",
               (long long)p->spm_peak_bytes, (long long)p->hw->spm_bytes,
               (long long)p->spm_bound_bytes, (long long)p->psum_peak_bytes,
               (long long)hw_psum_bytes(p->hw), (long long)p->dram_bytes,
               (long long)p->scratch_peak_bytes, (long long)p->scratch_bound_bytes);
    str_printf(out, "%-5s %-10s %-10s %-5s %-13s %s\n", "space", "address", "bytes", "slot",
               "operations", "buffer");
    for (int i = 0; i < p->nbuf; i++) {
        const struct tile_buf *b = p->bufs[i];
        if (b->first_op < 0) continue;
        for (int s = 0; s < b->slots; s++) {
            char life[32];
            snprintf(life, sizeof life, "%d..%d", b->first_op, b->last_op);
            str_printf(out, "%-5s 0x%08llx %-10lld %-5d %-13s ", isa_space_name((int)b->space),
                       (unsigned long long)b->addr[s], (long long)b->bytes, s, life);
            str_shown(out, b->kernel >= 0 ? p->kernels[b->kernel]->name : "");
            str_puts(out, b->kernel >= 0 ? " " : "");
            str_shown(out, b->name);
            str_putc(out, '\n');
        }
    }
}

static void emit_layers(const struct tile_program *p, struct str *out) {
    str_printf(out, "%4s %12s %12s %10s %10s %10s %6s  %-14s %-24s %s\n", "tag", "est.cycles",
               "macs", "weights", "inputs", "outputs", "steps", "kernel", "op", "layer");
    for (int i = 0; i < p->nkernel; i++) {
        const struct tile_kernel *k = p->kernels[i];
        str_printf(out, "%4d %12.0f %12lld %10lld %10lld %10lld %6d  %-14s %-24s ", i + 1,
                   k->estimate_cycles, (long long)k->macs, (long long)k->weight_bytes,
                   (long long)k->input_bytes, (long long)k->output_bytes,
                   k->last_step - k->first_step + 1, k->kernel ? k->kernel : "",
                   k->op ? k->op : "");
        str_shown(out, k->name);
        str_putc(out, '\n');
    }
}

static npu_status missing(const char *what) {
    return npu_fail(USAGE, "--emit %s: the pipeline stopped before that stage", what);
}

static npu_status render(const struct npuc_result *r, enum npuc_emit kind, const char *file,
                         struct str *out) {
    if (kind == NPUC_EMIT_ASM ? !r->image : kind == NPUC_EMIT_GRAPH ? !r->graph : !r->tiles)
        return missing(npuc_emit_names[kind]);
    switch (kind) {
    case NPUC_EMIT_GRAPH: graph_print(r->graph, out); break;
    case NPUC_EMIT_TILES: tile_print(r->tiles, out); break;
    case NPUC_EMIT_PLAN: emit_plan(r->tiles, out); break;
    case NPUC_EMIT_LAYERS: emit_layers(r->tiles, out); break;
    case NPUC_EMIT_ASM: return asm_print_image(r->image, NULL, file, out);
    case NPUC_EMITS: break;
    }
    return NULL;
}

static npu_status emit_one(struct npuc_result *r, const struct npuc_emission *e) {
    struct str out = {0};
    if (e->kind == NPUC_EMIT_GRAPH && e->file && r->graph && !file_is_direct(e->file))
        return graph_save(r->graph, e->file); // whole, to be read back
    npu_status st = render(r, e->kind, e->file, &out);
    if (!st) st = str_status(&out);
    if (!st && e->file)
        st = file_write_atomic(e->file, (struct span){.data = (const uint8_t *)str_text(&out),
                                                      .size = out.len});
    else if (!st)
        fwrite(str_text(&out), 1, out.len, stdout);
    str_free(&out);
    return st;
}

npu_status npuc_emit(const struct npuc_options *o, struct npuc_result *r) {
    for (int kind = 0; kind < NPUC_EMITS; kind++)
        for (int i = 0; i < o->nemit; i++)
            if ((int)o->emit[i].kind == kind) NPU_TRY(emit_one(r, &o->emit[i]));
    return NULL;
}

static void shape(const int64_t *dims, int rank, struct str *out) {
    str_puts(out, "[");
    for (int d = 0; d < rank; d++)
        str_printf(out, "%s%lld", d ? "," : "", (long long)dims[d]);
    str_puts(out, "]");
}

// The launch of the default entry point whose first layer has this tag, from *next on.
static void info_launch(const struct npu_program_image *image, uint32_t tag, size_t *next,
                        struct str *out) {
    const struct npu_image_entry *e = &image->entries[0];
    if (*next >= e->nlaunches || e->launches[*next].tag != tag) return;
    const struct npu_image_launch *l = &e->launches[*next];
    str_printf(out, "launch %zu: ", (*next)++);
    str_shown(out, l->op);
    if (l->views) str_printf(out, ", behind %" PRIu32 " that launch nothing", l->views);
    str_puts(out, "\n");
}

void npuc_info(const struct npu_program_image *image, struct str *out) {
    str_puts(out, "target: ");
    str_shown(out, image->target);
    str_puts(out, "  dtype: ");
    str_shown(out, image->dtype_mode);
    str_putc(out, '\n');
    for (size_t i = 0; i < image->ntensors; i++) {
        const struct npu_image_tensor *t = &image->tensors[i];
        if (t->role == CONTAINER_ROLE_OUTPUT) continue;
        str_puts(out, t->role == CONTAINER_ROLE_STATE ? "state %" : "in  %");
        str_shown(out, t->name);
        str_printf(out, " : %s", isa_dtype_name(t->dtype));
        shape(t->dims, t->rank, out);
        str_puts(out, "\n");
    }
    size_t launch = 0;
    for (size_t i = 0; i < image->ntags; i++) {
        const struct npu_image_tag *t = &image->tags[i];
        info_launch(image, t->tag, &launch, out);
        str_puts(out, "  ");
        if (t->text[0]) {
            str_shown(out, t->text);
        } else {
            str_shown(out, t->layer);
            str_puts(out, " = ");
            str_shown(out, t->op);
        }
        str_puts(out, "  @kernel=");
        str_shown(out, t->kernel);
        str_putc(out, '\n');
    }
    if (image->entries[0].views)
        str_printf(out, "at the end %" PRIu32 " that launch nothing\n", image->entries[0].views);
    for (size_t i = 0; i < image->ntensors; i++) {
        const struct npu_image_tensor *t = &image->tensors[i];
        if (t->role != CONTAINER_ROLE_OUTPUT) continue;
        str_puts(out, "out %");
        str_shown(out, t->name);
        str_putc(out, '\n');
    }
}
