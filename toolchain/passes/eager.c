// SPDX-License-Identifier: Apache-2.0
// Passes over each call of the model alone, for eager programs.
//
// A framework that runs a model call by call has one tuned kernel per call and sees nothing of its
// neighbours. So a stretch of nodes that belong to one call (graph_node.call) becomes a graph of
// its own, whose inputs are the values that it reads and whose outputs are those that others read;
// the passes make of it what they would make of a model that is that call and nothing else; the
// result takes the place of the stretch.
#include "runtime/base/progress.h"
#include "toolchain/passes/pass.h"

// Copying nodes from one graph to another: what a value of the first is in the second, by id.
struct copier {
    struct graph *to;
    struct graph_value **is;
};

static struct graph_value *copy_value(struct graph *to, const struct graph_value *v) {
    struct graph_value *made = graph_add_value(to, v->name, v->dtype, v->rank, v->dims);
    made->data = v->data;
    made->data_dtype = v->data_dtype;
    made->source = v->source;
    made->source_offset = v->source_offset;
    made->index_limit = v->index_limit;
    made->file_dtype = v->file_dtype;
    return made;
}

static struct graph_node *copy_node(struct copier *c, const struct graph_node *n,
                                    struct graph_node *before) {
    struct graph *to = c->to;
    struct graph_value **in = ARENA_ARRAY(to->arena, struct graph_value *, (size_t)n->nin + 1);
    for (int i = 0; i < n->nin; i++) {
        const struct graph_value *v = n->inputs[i];
        if (!c->is[v->id] && v->data) c->is[v->id] = copy_value(to, v);
        in[i] = c->is[v->id];
        NPU_ASSERT(in[i]); // inputs and results before it have been copied
    }
    struct graph_node *made = graph_add_node(to, n->op, n->name, n->nin, in, before);
    made->nown = n->nown;
    made->attrs =
        n->nattr ? arena_copy(to->arena, n->attrs, (size_t)n->nattr * sizeof *n->attrs) : NULL;
    made->nattr = n->nattr;
    made->has_chain = n->has_chain;
    made->chain = n->chain;
    for (int k = 0; k < 3; k++)
        made->chain_in[k] = n->chain_in[k];
    made->origins = n->origins;
    made->norigin = n->norigin;
    made->kernel = n->kernel;
    made->call = n->call;
    made->nout = n->nout;
    made->outputs = ARENA_ARRAY(to->arena, struct graph_value *, (size_t)n->nout + 1);
    for (int i = 0; i < n->nout; i++) {
        struct graph_value *y = copy_value(to, n->outputs[i]);
        y->producer = made;
        made->outputs[i] = c->is[n->outputs[i]->id] = y;
    }
    return made;
}

// Nodes first .. last of the graph, which belong to one call.
struct stretch {
    struct graph_node *first, *last;
    int *uses; // of every value by the whole graph, by id
};

static bool inside(const struct stretch *s, const struct graph_value *v) {
    for (const struct graph_node *n = s->first;; n = n->next) {
        if (n == v->producer) return true;
        if (n == s->last) return false;
    }
}

// Whether others read the value than the stretch.
static bool read_outside(const struct stretch *s, const struct graph_value *v) {
    int here = 0;
    for (const struct graph_node *n = s->first;; n = n->next) {
        for (int i = 0; i < n->nin; i++)
            here += n->inputs[i] == v;
        if (n == s->last) return s->uses[v->id] > here;
    }
}

// A stretch as a graph, and the values of the whole graph that its inputs and outputs stand for.
struct alone {
    struct graph *sub;
    struct graph_value **in, **out;
    struct graph_value **is; // values of sub, by id of those of the whole graph
};

static struct alone take_out(struct graph *g, const struct stretch *s, struct arena *scratch) {
    size_t reads = 0, results = 0;
    for (const struct graph_node *n = s->first;; n = n->next) {
        reads += (size_t)n->nin;
        results += (size_t)n->nout;
        if (n == s->last) break;
    }
    struct alone a = {.sub = graph_new(g->arena, s->first->name),
                      .in = ARENA_ARRAY(scratch, struct graph_value *, reads + 1),
                      .out = ARENA_ARRAY(scratch, struct graph_value *, results + 1),
                      .is = ARENA_ARRAY(scratch, struct graph_value *, (size_t)g->nvalue + 1)};
    struct copier c = {a.sub, a.is};
    for (const struct graph_node *n = s->first;; n = n->next) {
        for (int i = 0; i < n->nin; i++) {
            struct graph_value *v = n->inputs[i];
            if (a.is[v->id] || v->data || inside(s, v)) continue;
            a.is[v->id] = copy_value(a.sub, v);
            a.in[a.sub->ninput] = v;
            graph_add_input(a.sub, a.is[v->id]);
        }
        copy_node(&c, n, NULL);
        for (int i = 0; i < n->nout; i++) {
            if (!read_outside(s, n->outputs[i])) continue;
            a.out[a.sub->noutput] = n->outputs[i];
            graph_add_output(a.sub, a.is[n->outputs[i]->id]);
        }
        if (n == s->last) return a;
    }
}

// Puts what the stretch became where the stretch is. Constants that are still the same are not made
// again.
static void put_back(struct graph *g, const struct stretch *s, const struct alone *a,
                     struct arena *scratch) {
    struct graph *sub = a->sub;
    struct copier c = {g, ARENA_ARRAY(scratch, struct graph_value *, (size_t)sub->nvalue + 1)};
    struct graph_node *behind = s->last->next;
    const int call = s->first->call;
    for (int i = 0; i < sub->ninput; i++)
        c.is[sub->inputs[i]->id] = a->in[i];
    for (const struct graph_node *n = s->first;; n = n->next) {
        for (int i = 0; i < n->nin; i++)
            if (n->inputs[i]->data) c.is[a->is[n->inputs[i]->id]->id] = n->inputs[i];
        if (n == s->last) break;
    }
    for (const struct graph_node *n = sub->first; n; n = n->next)
        copy_node(&c, n, behind)->call = call;
    const char **name = ARENA_ARRAY(scratch, const char *, (size_t)sub->noutput + 1);
    for (int i = 0; i < sub->noutput; i++) {
        name[i] = a->out[i]->name;
        graph_replace_uses(g, a->out[i], c.is[sub->outputs[i]->id]);
    }
    for (struct graph_node *n = s->last, *prev;; n = prev) {
        prev = n->prev;
        const bool end = n == s->first;
        graph_remove_node(g, n);
        if (end) break;
    }
    for (int i = 0; i < sub->noutput; i++) {
        struct graph_value *v = c.is[sub->outputs[i]->id];
        if (!v->is_output && v->producer) graph_rename_value(g, v, name[i]);
    }
}

static npu_status run_stretch(struct pass_context *c, const struct stretch *s, int first, int end) {
    struct arena *scratch = arena_scratch(c->g->arena), *work = arena_scratch(c->g->arena);
    const struct alone a = take_out(c->g, s, scratch);
    struct pass_context own = {.g = a.sub, .scratch = work, .options = c->options, .log = c->log};
    npu_status st = passes_run_rows(&own, first, end, false);
    if (!st) {
        passes_drop_dead(a.sub);
        put_back(c->g, s, &a, scratch);
    }
    arena_free(work);
    arena_free(scratch);
    return st;
}

// How often each value is read, by nodes and as an output.
static int *count_uses(const struct graph *g, struct arena *scratch) {
    int *uses = ARENA_ARRAY(scratch, int, (size_t)g->nvalue + 1);
    for (const struct graph_node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->nin; i++)
            uses[n->inputs[i]->id]++;
    for (int i = 0; i < g->noutput; i++)
        uses[g->outputs[i]->id]++;
    return uses;
}

npu_status passes_run_calls(struct pass_context *c, int first, int end) {
    struct graph *g = c->g;
    uint64_t total = 0, done = 0;
    passes_adopt(g);
    if (first == end) return NULL;
    // Of values that stand in the graph now: nobody reads a value otherwise before its own stretch
    // has been taken out.
    int *uses = count_uses(g, c->scratch);
    for (const struct graph_node *n = g->first; n; n = n->next)
        total++;
    progress_stage("calls", total, 10, 40);
    for (struct graph_node *n = g->first, *next; n; n = next) {
        struct stretch s = {.first = n, .last = n, .uses = uses};
        for (done++; s.last->next && s.last->next->call == n->call; done++)
            s.last = s.last->next;
        next = s.last->next;
        NPU_TRY_NOTE(run_stretch(c, &s, first, end), "call '%s'", n->name);
        progress_at(done);
    }
    arena_reset(c->scratch);
    return NULL;
}

void passes_adopt(struct graph *g) {
    for (struct graph_node *n = g->last; n; n = n->prev)
        if (!n->call && n->next) n->call = n->next->call;
    for (struct graph_node *n = g->first; n; n = n->next)
        if (!n->call) n->call = n->prev ? n->prev->call : graph_add_call(g, n->name, "", NULL);
}
