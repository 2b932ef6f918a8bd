// SPDX-License-Identifier: Apache-2.0
#include "simulator/npusim/whatif.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/hw_yaml.h"
#include "simulator/npusim/runs.h"
#include "simulator/trace/critical.h"

static const struct {
    const char *key, *title, *changes;
    struct critical_change prediction;
} rows[] = {
#define WHATIF(NAME, key, title, changes, ...) {key, title, changes, __VA_ARGS__},
#include "simulator/npusim/whatif.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static npu_status unknown(const char *list, const char *word, size_t len) {
    struct str s = {0};
    for (int i = 0; i < ROWS; i++)
        str_printf(&s, "%s%s", i ? ", " : "", rows[i].key);
    npu_status st = npu_fail(USAGE, "--what-if %s: '%.*s' is none of all, none, %s", list, (int)len,
                             word, str_text(&s));
    str_free(&s);
    return st;
}

npu_status npusim_whatif_parse(const char *list, unsigned *set) {
    *set = 0;
    if (strcmp(list, "none") == 0) return NULL;
    if (strcmp(list, "all") == 0) {
        *set = (1U << ROWS) - 1;
        return NULL;
    }
    for (const char *word = list;; word++) {
        const size_t len = strcspn(word, ",");
        int found = -1;
        for (int i = 0; i < ROWS; i++)
            if (strlen(rows[i].key) == len && strncmp(rows[i].key, word, len) == 0) found = i;
        if (found < 0) return unknown(list, word, len);
        *set |= 1U << found;
        word += len;
        if (!*word) return NULL;
    }
}

static const char *value_text(struct npusim *s, const struct hw_param_desc *p, int64_t value) {
    struct str text = {0};
    hw_print_value(p, value, &text);
    return str_move(&text, s->a);
}

// One change "group.name*FACTOR" of the machine, appended to the options' settings and described.
// False: the machine is like that already, or may not be.
static bool change(struct npusim *s, const struct hw *hw, const char *text, size_t len,
                   struct npusim_list *set, struct str *about) {
    const size_t name = strcspn(text, "*/=");
    const struct hw_param_desc *p = hw_find(text, name);
    if (!p || name >= len) return false;
    const int64_t before = hw_get(hw, p);
    const char *value = arena_printf(s->a, "%.*s", (int)(len - name - 1), text + name + 1);
    struct hw changed = *hw;
    if (text[name] != '=') {
        const double factor = strtod(value, NULL);
        const double after = text[name] == '*' ? (double)before * factor : (double)before / factor;
        if ((double)(int64_t)after != after || !hw_in_range(p, (int64_t)after)) return false;
        value = value_text(s, p, (int64_t)after);
    }
    const char *setting = arena_printf(s->a, "%.*s=%s", (int)name, text, value);
    npu_status st = hw_set_text(&changed, setting, HW_SET_TIMING);
    npu_status_free(st);
    if (st || hw_get(&changed, p) == before) return false;
    set->item[set->n++] = (struct npusim_pair){NULL, setting};
    str_printf(about, "%s%.*s %s -> %s", about->len ? ", " : "", (int)name, text,
               value_text(s, p, before), value);
    return true;
}

// Settings of a row on top of those of the run. False: the row is left out.
static bool changes(struct npusim *s, const struct hw *hw, const char *text,
                    struct npusim_list *set, const char **about) {
    const struct npusim_list *before = &s->o->set;
    struct str words = {0};
    set->item = ARENA_ARRAY(s->a, struct npusim_pair, (size_t)before->n + 8);
    if (before->n) memcpy(set->item, before->item, (size_t)before->n * sizeof *before->item);
    set->n = before->n;
    bool any = false;
    while (*text) {
        const size_t len = strcspn(text, " ");
        any |= change(s, hw, text, len, set, &words);
        text += len + (text[len] == ' ');
    }
    *about = str_move(&words, s->a);
    return any;
}

// The program on the changed machine: its time.
static npu_status rerun(struct npusim *s, const struct npusim_list *set, double *us) {
    struct npusim_options o = *s->o;
    o.set = *set;
    o.no_data = o.quiet = true;
    o.check_layers = false;
    o.noise = 0;
    struct npusim other = {.o = &o, .a = s->a};
    npu_status st = npusim_open(&other, s->o->program);
    if (!st) {
        struct sim_device *d = sim_device_of(other.device);
        sim_device_begin(d, NULL);
        st = npu_session_run(other.session, NULL);
        *us = (double)sim_device_totals(d)->cycles / (double)sim_device_hw(d)->clock_npu_mhz;
    }
    npusim_close(&other);
    return st;
}

npu_status npusim_whatif(struct npusim *s, unsigned set, const struct trace_run *run,
                         const struct trace_log *log, struct trace_whatif **out, size_t *count) {
    struct critical *path;
    *count = 0;
    *out = ARENA_ARRAY(s->a, struct trace_whatif, ROWS);
    NPU_TRY(critical_new(run, log, &path));
    npu_status st = NULL;
    for (int i = 0; !st && path && i < ROWS; i++) {
        struct npusim_list settings;
        struct trace_whatif w = {.title = rows[i].title};
        struct critical_change c = rows[i].prediction;
        if (!(set >> i & 1U) || !changes(s, run->hw, rows[i].changes, &settings, &w.change))
            continue;
        double mhz = (double)run->hw->clock_npu_mhz, cycles;
        if (strncmp(rows[i].changes, "clock.", 6) == 0) {
            mhz *= c.memory;
            c.host = c.memory; // neither has the NPU's clock
        }
        if (c.earlier_ps > 0) c.earlier_ps *= (double)run->hw->dram_latency_ps;
        st = critical_predict(path, &c, &cycles);
        w.predicted_us = cycles / mhz;
        if (!st) st = rerun(s, &settings, &w.rerun_us);
        if (!st) (*out)[(*count)++] = w;
    }
    critical_free(path);
    return st ? npu_note(st, "a what-if (--what-if=none leaves them out)") : NULL;
}

void npusim_whatif_print(const struct trace_run *run, struct str *s) {
    const double us = (double)run->cycles / (double)run->hw->clock_npu_mhz;
    if (!run->nwhatif) return;
    str_puts(s, "\nwhat if                                       predicted us        again us   "
                "faster  parameters\n");
    for (size_t i = 0; i < run->nwhatif; i++) {
        const struct trace_whatif *w = &run->whatif[i];
        str_printf(s, "%-42s%16.2f%16.2f%9.3f  %s\n", w->title, w->predicted_us, w->rerun_us,
                   us / w->rerun_us, w->change);
    }
    str_puts(s,
             "predicted: the longest path with other durations; again: the program timed on that "
             "machine.\n");
}
