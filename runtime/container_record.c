// SPDX-License-Identifier: Apache-2.0
//
// Section RECORD: from and to its protobuf message, and what must hold in it.

#include <inttypes.h>
#include <string.h>

#include "isa/insn.h"
#include "npu_program.pb-c.h"
#include "runtime/base/diag.h"
#include "runtime/container_internal.h"

enum { MAX_FAULTS = 20 };

static char *text(const char *s) {
    return (char *)(s ? s : "");
}

static void option_any(void *message) {
    npu__option__init(message);
}
static void result_any(void *message) {
    npu__result__init(message);
}

struct span container_pack_record(const struct npu_program_image *image, struct arena *a) {
    const struct npu_image_record *from = image->record;
    Npu__Record to;
    npu__record__init(&to);
    to.model = text(from->model);
    to.model_bytes = from->model_bytes;
    to.model_crc = from->model_crc;
    to.graph_hash = from->graph_hash;
    to.n_options = from->noptions;
    to.options = container_new_messages(a, sizeof(Npu__Option), option_any, from->noptions);
    for (size_t i = 0; i < from->noptions; i++) {
        to.options[i]->name = text(from->options[i].name);
        to.options[i]->value = text(from->options[i].value);
    }
    to.n_results = from->nresults;
    to.results = container_new_messages(a, sizeof(Npu__Result), result_any, from->nresults);
    for (size_t i = 0; i < from->nresults; i++) {
        const struct npu_image_result *r = &from->results[i];
        Npu__Result *m = to.results[i];
        m->name = text(r->name);
        m->first_tag = r->first_tag;
        m->last_tag = r->last_tag;
        m->space = (uint32_t)r->space;
        m->address = r->address;
        m->dtype = (uint32_t)r->dtype;
        m->n_dims = m->n_strides = (size_t)r->rank;
        m->dims = (int64_t *)r->dims;
        m->strides = (int64_t *)r->strides;
    }
    size_t size = npu__record__get_packed_size(&to);
    uint8_t *bytes = arena_alloc(a, size + 1);
    npu__record__pack(&to, bytes);
    return (struct span){bytes, size};
}

static npu_status get_result(const Npu__Result *from, struct npu_image_result *to) {
    if (from->n_dims != from->n_strides || from->n_dims > CONTAINER_MAX_RANK)
        return npu_fail(BAD_INPUT, "result '%s' has %zu dimensions and %zu strides, at most %d",
                        from->name, from->n_dims, from->n_strides, CONTAINER_MAX_RANK);
    *to = (struct npu_image_result){
        .name = from->name,
        .first_tag = from->first_tag,
        .last_tag = from->last_tag,
        .space = from->space <= 255 ? (int)from->space : -1,
        .dtype = from->dtype <= 255 ? (int)from->dtype : -1,
        .rank = (int)from->n_dims,
        .address = from->address,
    };
    for (size_t d = 0; d < from->n_dims; d++) {
        to->dims[d] = from->dims[d];
        to->strides[d] = from->strides[d];
    }
    return NULL;
}

npu_status container_unpack_record(struct arena *a, struct span bytes,
                                   struct npu_program_image *image) {
    void *message;
    NPU_TRY(container_unpack_message(a, bytes, &npu__record__descriptor, &message));
    const Npu__Record *from = message;
    struct npu_image_record *to = ARENA_NEW(a, struct npu_image_record);
    struct npu_image_option *options = ARENA_ARRAY(a, struct npu_image_option, from->n_options);
    for (size_t i = 0; i < from->n_options; i++)
        options[i] = (struct npu_image_option){from->options[i]->name, from->options[i]->value};
    struct npu_image_result *results = ARENA_ARRAY(a, struct npu_image_result, from->n_results);
    for (size_t i = 0; i < from->n_results; i++)
        NPU_TRY(get_result(from->results[i], &results[i]));
    *to = (struct npu_image_record){.model = from->model,
                                    .model_bytes = from->model_bytes,
                                    .model_crc = from->model_crc,
                                    .graph_hash = from->graph_hash,
                                    .options = options,
                                    .noptions = from->n_options,
                                    .results = results,
                                    .nresults = from->n_results};
    image->record = to;
    return NULL;
}

// Extent in bytes, from the address on; false when it is beyond 2^48.
static bool extent(const struct npu_image_result *r, uint64_t *bytes) {
    const int64_t limit = INT64_C(1) << CONTAINER_DRAM_LIMIT_BITS;
    int64_t last = 0, count = 1;
    for (int d = 0; d < r->rank; d++) {
        if (r->dims[d] < 1 || r->dims[d] > limit / count) return false;
        count *= r->dims[d];
        if (r->strides[d] < 0 || r->strides[d] > limit) return false;
        if (r->dims[d] > 1 && r->strides[d] > (limit - last) / (r->dims[d] - 1)) return false;
        last += (r->dims[d] - 1) * r->strides[d];
    }
    *bytes = (uint64_t)(last + 1) * (uint64_t)isa_dtype_bits(r->dtype) / 8;
    return true;
}

static npu_status check_result(const struct npu_program_image *m,
                               const struct npu_image_result *r) {
    const char *name = text(r->name);
    uint64_t bytes;
    if (r->space != ISA_DRAM && r->space != ISA_SPM)
        return npu_fail(BAD_INPUT, "result '%s': memory %d, expected DRAM or the scratchpad", name,
                        r->space);
    if (isa_dtype_bits(r->dtype) < 8)
        return npu_fail(BAD_INPUT, "result '%s': type %d is unknown or below 8 bits", name,
                        r->dtype);
    if (r->rank < 0 || r->rank > CONTAINER_MAX_RANK || !extent(r, &bytes))
        return npu_fail(BAD_INPUT, "result '%s': a dimension or stride is out of range", name);
    if (r->space == ISA_DRAM && (r->address > m->dram_bytes || bytes > m->dram_bytes - r->address))
        return npu_fail(BAD_INPUT, "result '%s' lies outside the program's DRAM", name);
    if (r->space == ISA_SPM && r->address > UINT64_C(1) << CONTAINER_DRAM_LIMIT_BITS)
        return npu_fail(BAD_INPUT, "result '%s': address 0x%" PRIx64 " of the scratchpad", name,
                        r->address);
    if (r->first_tag > r->last_tag || !container_find_tag(m, r->first_tag) ||
        !container_find_tag(m, r->last_tag))
        return npu_fail(BAD_INPUT, "result '%s': no layers with tags %" PRIu32 " to %" PRIu32, name,
                        r->first_tag, r->last_tag);
    return NULL;
}

npu_status container_check_record(const struct npu_program_image *image, const char *where) {
    const struct npu_image_record *r = image->record;
    struct diag faults = {0};
    if (!r) return NULL;
    if (!text(r->model)[0] || strchr(text(r->model), '/'))
        diag_fail(&faults, BAD_INPUT, "%s: the record's model '%s' is no file name", where,
                  text(r->model));
    for (size_t i = 0; i < r->noptions && faults.count < MAX_FAULTS; i++)
        if (!text(r->options[i].name)[0])
            diag_fail(&faults, BAD_INPUT, "%s: option %zu of the record has no name", where, i);
    for (size_t i = 0; i < r->nresults && faults.count < MAX_FAULTS; i++) {
        npu_status st = check_result(image, &r->results[i]);
        if (st) diag_add(&faults, npu_note(st, "%s: record", where));
    }
    return diag_finish(&faults);
}
