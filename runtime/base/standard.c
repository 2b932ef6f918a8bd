// SPDX-License-Identifier: Apache-2.0
//
// A closed descriptor gets /dev/null, opened for what it is not used for: reading of standard input
// and writing of the other two then fails with EBADF, as it does when they are closed.

#define _XOPEN_SOURCE 700

#include "runtime/base/standard.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *name;
static bool finished;

static bool lost(void) {
    return fflush(stdout) != 0 || ferror(stdout);
}

static npu_status failure(void) {
    return npu_fail(IO, "standard output could not be written");
}

static void at_exit(void) {
    if (!finished && lost()) _exit(npu_status_report(failure(), name));
}

void standard_init(const char *program) {
    name = program;
    // Descriptors are given out from the lowest on: each one that is closed gets its own.
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    (void)signal(SIGXFSZ, SIG_IGN); // EFBIG from write() says it
    (void)atexit(at_exit);
}

npu_status standard_finish(npu_status st) {
    finished = true;
    return lost() && !st ? failure() : st;
}
