// SPDX-License-Identifier: Apache-2.0
//
// Forks and pipes. A child writes one record per piece, short enough to be written whole, and a
// failure as a record with the status's code and message; the parent reads all pipes until they end
// and waits for every child. After a failure it ends the children that are beyond it: they cannot
// have one that is told. A child leaves by _exit: what the parent had buffered or opened stays the
// parent's.
#define _GNU_SOURCE // sched_getaffinity
#include "simulator/npusim/shards.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/progress.h"

#define MESSAGE_BYTES 400

struct record {
    uint64_t piece;
    struct shard_result result;
    uint32_t code; // enum npu_code of a failure
    char message[MESSAGE_BYTES];
};
_Static_assert(sizeof(struct record) <= 512, "POSIX writes so much to a pipe at once");
#define SHORT_BYTES offsetof(struct record, message)

struct shard {
    pid_t pid;
    int fd;        // its pipe, -1: at its end
    size_t have;   // bytes of a record that is not complete
    uint64_t next; // piece that comes next
    bool ended;    // by us: its results are wanted no longer
    struct record record;
};

struct shards {
    struct shard *shard;
    int count;
    uint64_t n, done, failed_piece; // failed_piece: UINT64_MAX, none failed
    npu_status failed;
    struct shard_result *out;
};

static int fork_fails; // test hook

void shards_fail_fork_at(int k) {
    fork_fails = k;
}

int shards_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    const int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

// ---- the child ---------------------------------------------------------------------------------

static bool write_all(int fd, const void *bytes, size_t size) {
    const char *at = bytes;
    while (size) {
        const ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static _Noreturn void child(int fd, int index, int step, uint64_t n, shard_work *work, void *ctx) {
    progress_on = false; // the bar is the parent's
    for (uint64_t i = (uint64_t)index; i < n; i += (uint64_t)step) {
        struct record r = {.piece = i};
        npu_status st = work(ctx, i, &r.result);
        if (st) {
            r.code = (uint32_t)npu_status_code(st);
            snprintf(r.message, sizeof r.message, "%s", npu_status_message(st));
        }
        if (!write_all(fd, &r, st ? sizeof r : SHORT_BYTES) || st) _exit(st ? 0 : 1);
    }
    _exit(0);
}

// ---- the parent --------------------------------------------------------------------------------

static void fail(struct shards *s, uint64_t piece, npu_status st) {
    if (s->failed && piece >= s->failed_piece) {
        npu_status_free(st);
        return;
    }
    npu_status_free(s->failed);
    s->failed = st;
    s->failed_piece = piece;
}

static int start(struct shards *s, int index, shard_work *work, void *ctx) {
    int ends[2];
    if (pipe(ends)) return errno;
    const bool refused = fork_fails > 0 && --fork_fails == 0;
    const pid_t pid = refused ? -1 : fork();
    if (pid < 0) {
        const int error = refused ? EAGAIN : errno;
        close(ends[0]);
        close(ends[1]);
        return error;
    }
    if (pid == 0) {
        close(ends[0]);
        for (int i = 0; i < index; i++)
            close(s->shard[i].fd);
        child(ends[1], index, s->count, s->n, work, ctx);
    }
    close(ends[1]);
    s->shard[index] = (struct shard){.pid = pid, .fd = ends[0], .next = (uint64_t)index};
    return 0;
}

// Takes one complete record of a shard.
static void take(struct shards *s, struct shard *h) {
    const struct record *r = &h->record;
    h->have = 0;
    if (r->code) {
        fail(s, r->piece,
             npu_fail_at(__FILE__, __LINE__, (enum npu_code)r->code, "%.*s", MESSAGE_BYTES - 1,
                         r->message));
        return;
    }
    s->out[r->piece] = r->result;
    h->next = r->piece + (uint64_t)s->count;
    progress_at(++s->done);
}

// Waits for a child; one that ended before its last piece and gave no reason was killed.
static void reap(struct shards *s, struct shard *h) {
    const int number = (int)(h - s->shard) + 1;
    int status = 0;
    close(h->fd);
    h->fd = -1;
    while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (h->next >= s->n || h->record.code || h->ended) return;
    if (WIFSIGNALED(status))
        fail(s, h->next,
             npu_fail(IO, "process %d of %d, which made the runs, was ended by signal %d (%s)",
                      number, s->count, WTERMSIG(status), strsignal(WTERMSIG(status))));
    else
        fail(s, h->next,
             npu_fail(IO, "process %d of %d, which made the runs, ended early with status %d",
                      number, s->count, WEXITSTATUS(status)));
}

static void end(struct shard *h) {
    h->ended = true;
    (void)kill(h->pid, SIGKILL);
}

// Reads what a pipe holds, to its end, at which the child is.
static void receive(struct shards *s, struct shard *h) {
    const bool whole = h->have >= SHORT_BYTES; // a failure's message follows
    const size_t want = (whole ? sizeof h->record : SHORT_BYTES) - h->have;
    const ssize_t n = read(h->fd, (char *)&h->record + h->have, want);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) {
        reap(s, h);
        return;
    }
    h->have += (size_t)n;
    if (h->have == (h->record.code && h->have >= SHORT_BYTES ? sizeof h->record : SHORT_BYTES))
        take(s, h);
}

static void receive_all(struct shards *s) {
    struct pollfd p[64];
    for (;;) {
        int open = 0, which[64];
        for (int i = 0; i < s->count; i++)
            if (s->shard[i].fd >= 0) {
                which[open] = i;
                p[open++] = (struct pollfd){.fd = s->shard[i].fd, .events = POLLIN};
            }
        if (!open) return;
        if (poll(p, (nfds_t)open, -1) < 0 && errno != EINTR) return;
        for (int i = 0; i < open; i++)
            if (p[i].revents) receive(s, &s->shard[which[i]]);
        for (int i = 0; i < s->count && s->failed; i++)
            if (s->shard[i].fd >= 0 && s->shard[i].next > s->failed_piece) end(&s->shard[i]);
    }
}

static npu_status here(uint64_t n, shard_work *work, void *ctx, struct shard_result *out) {
    const bool bar = progress_on;
    for (uint64_t i = 0; i < n; i++) {
        progress_on = false; // the machine's own stages would move it
        npu_status st = work(ctx, i, &out[i]);
        progress_on = bar;
        if (st) return st;
        progress_at(i + 1);
    }
    return NULL;
}

npu_status shards_run(int processes, uint64_t n, shard_work *work, void *ctx,
                      struct shard_result *out) {
    struct shards s = {.n = n, .failed_piece = UINT64_MAX, .out = out};
    if (processes > 64) processes = 64; // more pieces at a time than that wait for memory only
    if ((uint64_t)processes > n) processes = (int)n;
    if (processes <= 1) return here(n, work, ctx, out);
    s.shard = base_alloc_array((size_t)processes, sizeof *s.shard);
    if (!s.shard) return npu_fail(NO_MEMORY, "processes for the runs: out of memory");
    s.count = processes;
    fflush(NULL);
    int started = 0, error = 0;
    while (started < processes && !(error = start(&s, started, work, ctx)))
        started++;
    if (error) {
        s.count = started; // their results are wanted no longer
        fail(&s, 0,
             npu_fail(IO, "starting process %d of %d for the runs: %s; --threads 1 needs none",
                      started + 1, processes, strerror(error)));
        for (int i = 0; i < started; i++)
            end(&s.shard[i]);
    } else {
        receive_all(&s);
    }
    for (int i = 0; i < started; i++)
        if (s.shard[i].fd >= 0) reap(&s, &s.shard[i]); // it ends at its next record
    base_free(s.shard);
    NPU_ASSERT(s.failed || s.done == n);
    return s.failed;
}
