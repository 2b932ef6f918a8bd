// SPDX-License-Identifier: Apache-2.0
//
// Replays a corpus through a fuzz target without libFuzzer: every file, every file cut at 64
// places, then mutations of them round robin until the seconds or the runs are used up. The n-th
// input depends on the corpus and the seed only, so a finding is found again:
//
//     fuzz_<name> [--seconds S] [--runs N] [--seed X] FILE|FOLDER...
//
// When the target crashes, the input is left in crash-<seed>-<n> in the working folder.

#define _XOPEN_SOURCE 700

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { MAX_INPUT_BYTES = 1 << 20, MAX_FILES = 4096 };

struct input {
    uint8_t *data;
    size_t size;
};

static struct input corpus[MAX_FILES];
static size_t files;
static struct input current; // what the target is reading
static char crash_name[64];

static void save_current(int signal_number) {
    int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0) {
        (void)!write(fd, current.data, current.size);
        (void)close(fd);
        static const char text[] = "replay: the input is in ";
        (void)!write(2, text, sizeof text - 1);
        (void)!write(2, crash_name, strlen(crash_name));
        (void)!write(2, "\n", 1);
    }
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

static void read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || files == MAX_FILES) {
        fprintf(stderr, "replay: %s: cannot read it, or too many files\n", path);
        exit(2);
    }
    struct input in = {malloc(MAX_INPUT_BYTES), 0};
    if (in.data) in.size = fread(in.data, 1, MAX_INPUT_BYTES, f);
    (void)fclose(f);
    corpus[files++] = in;
}

static int not_hidden(const struct dirent *e) {
    return e->d_name[0] != '.';
}

// A folder's files in order of their names: the order of the disk would not repeat.
static void read_path(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        read_file(path);
        return;
    }
    struct dirent **entries;
    int count = scandir(path, &entries, not_hidden, alphasort);
    for (int i = 0; i < count; i++) {
        char name[4096];
        (void)snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        read_path(name);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

static uint64_t random_state;

static uint64_t next_random(void) { // splitmix64
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(size_t limit) {
    return limit ? (size_t)(next_random() % limit) : 0;
}

// Opens a gap of `size` bytes at `at`; false when the input would get too large.
static bool open_gap(struct input *in, size_t at, size_t size) {
    if (in->size + size > MAX_INPUT_BYTES) return false;
    memmove(in->data + at + size, in->data + at, in->size - at);
    in->size += size;
    return true;
}

static void put_number(struct input *in) {
    static const uint64_t values[] = {0,          1,           2,          7,
                                      8,          0x7f,        0x80,       0xff,
                                      0x100,      0x7fff,      0x8000,     0xffff,
                                      0x10000,    1 << 24,     0x7fffffff, 0x80000000,
                                      0xffffffff, 0x100000000, INT64_MAX,  (uint64_t)INT64_MAX + 1,
                                      UINT64_MAX};
    uint64_t value = values[below(sizeof values / sizeof *values)] + below(3) - 1;
    size_t width = (size_t)1 << below(4), at = below(in->size);
    for (size_t i = 0; i < width && at + i < in->size; i++)
        in->data[at + i] = (uint8_t)(value >> (8 * i));
}

static void splice(struct input *in) {
    const struct input *other = &corpus[below(files)];
    size_t from = below(other->size), size = below(other->size - from + 1),
           at = below(in->size + 1);
    if (size > 4096) size = 4096;
    if (below(2)) {
        if (!open_gap(in, at, size)) return;
    } else if (size > in->size - at) {
        size = in->size - at;
    }
    memcpy(in->data + at, other->data + from, size);
}

static void mutate_once(struct input *in) {
    size_t at = below(in->size), rest = in->size - at, size = below(rest < 64 ? rest + 1 : 64);
    switch (in->size ? below(9) : 8) {
    case 0: in->data[at] ^= (uint8_t)(1u << below(8)); break;
    case 1: in->data[at] = (uint8_t)next_random(); break;
    case 2: put_number(in); break;
    case 3: // delete
        memmove(in->data + at, in->data + at + size, rest - size);
        in->size -= size;
        break;
    case 4: // repeat
        if (open_gap(in, at, size)) memcpy(in->data + at, in->data + at + size, size);
        break;
    case 5: // copy elsewhere
        memmove(in->data + below(in->size - size + 1), in->data + at, size);
        break;
    case 6: in->size = at; break;
    case 7: { // another digit or letter, for texts
        static const char letters[] = "0123456789-+.,:;()[]{}<>=%@#\"'\\/_ \n\tabfxX\x80\xff";
        in->data[at] = (uint8_t)letters[below(sizeof letters - 1)];
        break;
    }
    default: splice(in); break;
    }
}

static void run(const uint8_t *data, size_t size) {
    // A block of exactly this size, so that reading beyond it is noticed.
    current = (struct input){malloc(size ? size : 1), size};
    if (!current.data) return;
    if (size) memcpy(current.data, data, size);
    (void)LLVMFuzzerTestOneInput(current.data, size);
    free(current.data);
    current = (struct input){0};
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t replay_all(double end) {
    uint64_t runs = 0;
    run(NULL, 0);
    for (size_t i = 0; i < files; i++, runs++)
        run(corpus[i].data, corpus[i].size);
    for (size_t i = 0; i < files && now() < end; i++) {
        for (size_t cut = 0; cut < 64; cut++, runs++)
            run(corpus[i].data, corpus[i].size * cut / 64);
    }
    return runs + 1;
}

static uint64_t replay_mutations(uint64_t seed, uint64_t limit, double end) {
    uint64_t n = 0;
    struct input in = {malloc(MAX_INPUT_BYTES), 0};
    for (; in.data && n < limit && (n % 16 != 0 || now() < end); n++) {
        const struct input *from = &corpus[n % files];
        random_state = seed * 0x100000001b3u + n;
        memcpy(in.data, from->data, from->size);
        in.size = from->size;
        for (size_t i = 1 + below(6); i > 0; i--)
            mutate_once(&in);
        (void)snprintf(crash_name, sizeof crash_name, "crash-%" PRIu64 "-%" PRIu64, seed, n);
        run(in.data, in.size);
    }
    free(in.data);
    return n;
}

int main(int argc, char *argv[]) {
    double seconds = 5;
    uint64_t limit = UINT64_MAX, seed = 1;
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (has_value && strcmp(argv[i], "--seconds") == 0) {
            seconds = strtod(argv[++i], NULL);
        } else if (has_value && strcmp(argv[i], "--runs") == 0) {
            limit = strtoull(argv[++i], NULL, 0);
        } else if (has_value && strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[++i], NULL, 0);
        } else {
            read_path(argv[i]);
        }
    }
    if (files == 0) {
        fprintf(stderr, "replay: no files to start from\n");
        return 2;
    }
    (void)snprintf(crash_name, sizeof crash_name, "crash-corpus");
    (void)signal(SIGABRT, save_current);
    double end = now() + seconds;
    uint64_t replayed = replay_all(end);
    uint64_t mutated = replay_mutations(seed, limit, end);
    printf("replay: %zu files, %" PRIu64 " replays, %" PRIu64 " mutations, no crash\n", files,
           replayed, mutated);
    for (size_t i = 0; i < files; i++)
        free(corpus[i].data);
    return 0;
}
