// SPDX-License-Identifier: Apache-2.0
//
// A queue of runs: a ring of jobs in order of submission. Waiting for a job first collects those
// before it, whose outcomes stay in their slots until they are asked for.

#include <inttypes.h>

#include "runtime/api.h"
#include "runtime/base/alloc.h"

struct job {
    struct npu_session *session; // NULL: its outcome was taken
    uint64_t number;
    bool done;
    npu_status status; // of a job that is done; owned
    struct npu_run_info info;
};

struct npu_queue {
    struct npu_device *device;
    struct job *jobs; // slot: number % depth
    size_t depth;
    uint64_t submitted; // jobs, ever
    uint64_t first;     // oldest job whose outcome may still be there
    uint64_t collected; // jobs 1..collected are done
};

enum { QUEUE_MAX_DEPTH = 4096 };

npu_status npu_queue_new(struct npu_device *device, size_t depth, struct npu_queue **out) {
    *out = NULL;
    if (depth == 0 || depth > QUEUE_MAX_DEPTH)
        return npu_fail(USAGE, "queue depth %zu, expected 1..%d", depth, QUEUE_MAX_DEPTH);
    struct npu_queue *q = base_alloc(sizeof *q);
    struct job *jobs = base_alloc_array(depth, sizeof *jobs);
    if (!q || !jobs) {
        base_free(q);
        base_free(jobs);
        return npu_fail(NO_MEMORY, "queue: out of memory");
    }
    *q = (struct npu_queue){.device = device, .jobs = jobs, .depth = depth, .first = 1};
    *out = q;
    return NULL;
}

static struct job *job_of(const struct npu_queue *q, uint64_t number) {
    return &q->jobs[number % q->depth];
}

// Waits for all jobs up to `number`.
static void collect(struct npu_queue *q, uint64_t number) {
    while (q->collected < number) {
        struct job *job = job_of(q, ++q->collected);
        job->status = npu_session_wait(job->session, &job->info);
        job->done = true;
    }
}

void npu_queue_free(struct npu_queue *q) {
    if (!q) return;
    collect(q, q->submitted);
    for (size_t i = 0; i < q->depth; i++)
        npu_status_free(q->jobs[i].status);
    base_free(q->jobs);
    base_free(q);
}

npu_status npu_queue_submit(struct npu_queue *q, struct npu_session *session, uint64_t *number) {
    *number = 0;
    if (npu_session_device(session) != q->device)
        return npu_fail(USAGE, "queue: the session belongs to another device");
    while (q->first <= q->submitted && !job_of(q, q->first)->session)
        q->first++;
    if (q->submitted - q->first + 1 >= q->depth)
        return npu_fail(USAGE, "queue: %zu runs are on their way, its depth; wait for job %" PRIu64,
                        q->depth, q->first);
    NPU_TRY(npu_session_submit(session));
    *number = ++q->submitted;
    *job_of(q, *number) = (struct job){.session = session, .number = *number};
    return NULL;
}

npu_status npu_queue_wait(struct npu_queue *q, uint64_t number, struct npu_run_info *info) {
    if (info) *info = (struct npu_run_info){0};
    struct job *job = number >= q->first && number <= q->submitted ? job_of(q, number) : NULL;
    if (!job || !job->session)
        return npu_fail(USAGE, "queue: job %" PRIu64 " does not exist or was waited for", number);
    collect(q, number);
    if (info) *info = job->info;
    npu_status st = job->status;
    *job = (struct job){0};
    return st;
}

size_t npu_queue_pending(const struct npu_queue *q) {
    size_t count = 0;
    for (uint64_t n = q->first; n <= q->submitted; n++)
        count += job_of(q, n)->session != NULL;
    return count;
}
