// SPDX-License-Identifier: Apache-2.0
//
// The view of a run that a path's ending names.
#include <string.h>

#include "simulator/trace/trace.h"

typedef npu_status write_view(const struct trace_run *run, const struct trace_log *log,
                              const char *path);

static const struct {
    const char *ending;
    write_view *write;
} views[] = {
#define TRACE_VIEW(NAME, ending, function, meaning) {ending, function},
#include "simulator/trace/view.def"
};

static const char all[] =
#define TRACE_VIEW(NAME, ending, function, meaning) " " ending
#include "simulator/trace/view.def"
    ;

// The view of a path; NULL: none. Of ".csv" and ".layers.csv" the longer one is meant.
static write_view *find(const char *path) {
    const size_t n = strlen(path);
    size_t longest = 0;
    write_view *found = NULL;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        const size_t m = strlen(views[i].ending);
        if (n <= m || m <= longest || strcmp(path + n - m, views[i].ending) != 0) continue;
        longest = m;
        found = views[i].write;
    }
    return found;
}

const char *trace_endings(void) {
    return all + 1;
}

bool trace_path_known(const char *path) {
    return find(path) != NULL;
}

npu_status trace_write(const struct trace_run *run, const struct trace_log *log, const char *path) {
    write_view *write = find(path);
    if (!write)
        return npu_fail(UNSUPPORTED, "'%s': a trace ends in one of %s", path, trace_endings());
    return write(run, log, path);
}
