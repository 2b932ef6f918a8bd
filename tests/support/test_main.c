// SPDX-License-Identifier: Apache-2.0
//
// main of every unit-test program. It exists so that no other library's main (SystemC exports one)
// is taken instead, and so that a program without tests, or one that leaks, fails.
//
// Criterion runs each test in a child process that enters here too and never comes back from
// criterion_run_all_tests, so the leak check below is of the parent; a child checks itself at exit.

#include <criterion/criterion.h>
#include <stdio.h>

int main(int argc, char *argv[]) {
    struct criterion_test_set *tests = criterion_initialize();
    int result = 0;
    if (criterion_handle_args(argc, argv, true)) {
        if (tests->tests == 0) {
            fprintf(stderr, "test_main: no tests in this program\n");
            result = 1;
        } else {
            result = !criterion_run_all_tests(tests);
        }
    }
    criterion_finalize(tests);
    return result;
}
