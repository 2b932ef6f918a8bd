// SPDX-License-Identifier: Apache-2.0
//
// A user of the installed API, compiled as C17 and as C++11: the version, and a missing program.

#include <npu/npu.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    struct npu_program *program = NULL;
    npu_status status = npu_program_load("/nonexistent.npu", &program);
    int good = strcmp(npu_version(), "") != 0 && program == NULL &&
               npu_status_error(status) == NPU_ERROR_IO && *npu_status_message(status) != '\0';
    npu_status_free(status);
    printf("npu %s: %s\n", npu_version(), good ? "good" : "wrong");
    return good ? 0 : 1;
}
