// SPDX-License-Identifier: Apache-2.0
//
// Hardware descriptions from YAML: libyaml's events through a small state machine.
//
//   stream start, document start, mapping:
//     "base": scalar         start over from that preset (first key only)
//     GROUP: mapping         each key GROUP.NAME is looked up in hw.def, its value read with its
//                            unit and range
//   end, end; anything else (sequences, anchors, tags, a second document) is refused by its line.
//
// Each parameter remembers the line that set it, so a repeated one names both.

#include "runtime/base/hw_yaml.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "runtime/base/file.h"
#include "runtime/base/hw_value.h"
#include "runtime/base/text.h"

enum { MAX_PARAMS = 256, MAX_KEY = 64, MAX_BASES = 8 };

struct reader {
    yaml_parser_t parser;
    const char *where;
    struct hw *hw;
    unsigned set_at[MAX_PARAMS]; // line that set a parameter, 0: none
    int bases;                   // depth of base:
};

static unsigned line_of(yaml_mark_t mark) {
    return (unsigned)mark.line + 1;
}

const struct hw_preset *hw_find_preset(const char *name) {
    for (int i = 0; i < hw_npreset; i++)
        if (strcmp(hw_presets[i].name, name) == 0) return &hw_presets[i];
    return NULL;
}

// Fails with the text in `why`, which it frees.
static npu_status fail_at(const struct reader *r, unsigned line, struct str *why) {
    npu_status st = npu_fail(BAD_INPUT, "%s:%u: %s", r->where, line, str_text(why));
    str_free(why);
    return st;
}

static npu_status unexpected(const struct reader *r, const yaml_event_t *e, const char *wanted) {
    struct str why = {0};
    const char *found = "something else";
    if (e->type == YAML_SEQUENCE_START_EVENT) found = "a list";
    if (e->type == YAML_MAPPING_START_EVENT) found = "a mapping";
    if (e->type == YAML_SCALAR_EVENT) found = "a value";
    if (e->type == YAML_ALIAS_EVENT) found = "an alias";
    if (e->type == YAML_STREAM_END_EVENT) found = "the end of the file";
    if (e->type == YAML_DOCUMENT_START_EVENT) found = "a second document";
    str_printf(&why, "found %s where %s belongs", found, wanted);
    return fail_at(r, line_of(e->start_mark), &why);
}

static npu_status next(struct reader *r, yaml_event_t *e) {
    if (yaml_parser_parse(&r->parser, e)) return NULL;
    if (r->parser.error == YAML_MEMORY_ERROR)
        return npu_fail(NO_MEMORY, "out of memory reading %s", r->where);
    return npu_fail(BAD_INPUT, "%s:%u: not YAML: %s", r->where, line_of(r->parser.problem_mark),
                    r->parser.problem ? r->parser.problem : "unreadable");
}

// The text of a plain scalar; NULL for anything that carries an anchor, a tag or a NUL.
static const char *scalar(const yaml_event_t *e) {
    if (e->type != YAML_SCALAR_EVENT || e->data.scalar.anchor || e->data.scalar.tag) return NULL;
    const char *text = (const char *)e->data.scalar.value;
    return strlen(text) == e->data.scalar.length ? text : NULL;
}

static npu_status parse_into(struct hw *hw, const char *text, size_t size, const char *where,
                             int bases);

static npu_status use_base(struct reader *r) {
    yaml_event_t e;
    NPU_TRY(next(r, &e));
    npu_status st = NULL;
    const char *name = scalar(&e);
    const struct hw_preset *base = name ? hw_find_preset(name) : NULL;
    struct str why = {0};
    if (!name) {
        st = unexpected(r, &e, "the name of a preset");
    } else if (!base) {
        str_printf(&why, "base '%s' is not a preset; there are", name);
        for (int i = 0; i < hw_npreset; i++)
            str_printf(&why, " %s", hw_presets[i].name);
        st = fail_at(r, line_of(e.start_mark), &why);
    } else if (r->bases >= MAX_BASES) {
        str_printf(&why, "bases nest deeper than %d", MAX_BASES);
        st = fail_at(r, line_of(e.start_mark), &why);
    } else {
        st = parse_into(r->hw, base->text, base->size, base->name, r->bases + 1);
    }
    yaml_event_delete(&e);
    return st;
}

// The value of parameter `key`.
static npu_status read_param(struct reader *r, const char *key, unsigned line) {
    struct str why = {0};
    const struct hw_param_desc *p = hw_find(key, strlen(key));
    if (!p) {
        hw_explain_unknown(key, &why);
        return fail_at(r, line, &why);
    }
    unsigned *set_at = &r->set_at[p - hw_params];
    if (*set_at) {
        str_printf(&why, "%s is already set in line %u", key, *set_at);
        return fail_at(r, line, &why);
    }
    *set_at = line;
    yaml_event_t e;
    NPU_TRY(next(r, &e));
    const char *text = scalar(&e);
    npu_status st = NULL;
    int64_t value = 0;
    if (!text) {
        st = unexpected(r, &e, "a value");
    } else if (!hw_read_value(p, text, &value, &why)) {
        struct str full = {0};
        str_printf(&full, "%s: %s", key, str_text(&why));
        st = fail_at(r, line_of(e.start_mark), &full);
    } else {
        hw_set(r->hw, p, value);
    }
    str_free(&why);
    yaml_event_delete(&e);
    return st;
}

static bool known_group(const char *name) {
    const size_t n = strlen(name);
    for (int i = 0; i < hw_nparam; i++)
        if (strncmp(hw_params[i].key, name, n) == 0 && hw_params[i].key[n] == '.') return true;
    return false;
}

static npu_status read_group(struct reader *r, const char *group) {
    yaml_event_t e;
    NPU_TRY(next(r, &e));
    npu_status st = NULL;
    if (e.type != YAML_MAPPING_START_EVENT || e.data.mapping_start.anchor)
        st = unexpected(r, &e, "a mapping of parameters");
    yaml_event_delete(&e);
    while (!st) {
        NPU_TRY(next(r, &e));
        if (e.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&e);
            return NULL;
        }
        const char *name = scalar(&e);
        char key[2 * MAX_KEY + 2];
        if (!name) {
            st = unexpected(r, &e, "the name of a parameter");
        } else {
            (void)snprintf(key, sizeof key, "%s.%.*s", group, MAX_KEY, name);
            st = read_param(r, key, line_of(e.start_mark));
        }
        yaml_event_delete(&e);
    }
    return st;
}

static npu_status read_key(struct reader *r, const yaml_event_t *e, bool first) {
    const char *name = scalar(e);
    struct str why = {0};
    if (!name) return unexpected(r, e, "the name of a group");
    if (strcmp(name, "base") == 0) {
        if (first) return use_base(r);
        str_puts(&why, "base stands first or not at all");
        return fail_at(r, line_of(e->start_mark), &why);
    }
    if (!known_group(name) || strlen(name) > MAX_KEY) {
        str_printf(&why, "there is no group '%.64s'; there are", name);
        const char *title = NULL;
        for (int i = 0; i < hw_nparam; i++) {
            if (hw_group_title(&hw_params[i]) == title) continue;
            title = hw_group_title(&hw_params[i]);
            str_printf(&why, " %.*s", (int)strcspn(hw_params[i].key, "."), hw_params[i].key);
        }
        return fail_at(r, line_of(e->start_mark), &why);
    }
    char group[MAX_KEY + 1];
    (void)snprintf(group, sizeof group, "%s", name);
    return read_group(r, group);
}

// From the document's first event to its last.
static npu_status read_document(struct reader *r) {
    yaml_event_t e;
    NPU_TRY(next(r, &e)); // the document's content
    npu_status st = NULL;
    const bool empty = e.type == YAML_SCALAR_EVENT && e.data.scalar.length == 0;
    if (e.type != YAML_MAPPING_START_EVENT && !empty) st = unexpected(r, &e, "a mapping of groups");
    yaml_event_delete(&e);
    for (bool first = true; !st && !empty; first = false) {
        NPU_TRY(next(r, &e));
        const bool end = e.type == YAML_MAPPING_END_EVENT;
        if (!end) st = read_key(r, &e, first);
        yaml_event_delete(&e);
        if (end) break;
    }
    NPU_TRY(st);
    NPU_TRY(next(r, &e)); // document end
    yaml_event_delete(&e);
    NPU_TRY(next(r, &e));
    if (e.type != YAML_STREAM_END_EVENT) st = unexpected(r, &e, "the end of the file");
    yaml_event_delete(&e);
    return st;
}

static npu_status parse_into(struct hw *hw, const char *text, size_t size, const char *where,
                             int bases) {
    NPU_ASSERT(hw_nparam <= MAX_PARAMS);
    struct reader r = {.where = where, .hw = hw, .bases = bases};
    if (!yaml_parser_initialize(&r.parser))
        return npu_fail(NO_MEMORY, "out of memory reading %s", where);
    // libyaml takes no NULL, which an empty file has.
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text ? text : ""), size);
    yaml_event_t e;
    npu_status st = next(&r, &e); // stream start
    if (!st) yaml_event_delete(&e);
    if (!st) st = next(&r, &e);
    if (!st) {
        const bool empty = e.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
        if (!empty) st = read_document(&r);
    }
    yaml_parser_delete(&r.parser);
    return st;
}

npu_status hw_parse(const char *text, size_t size, const char *where, struct hw *out) {
    struct hw hw;
    hw_defaults(&hw);
    NPU_TRY(parse_into(&hw, text, size, where, 0));
    *out = hw;
    return NULL;
}

npu_status hw_load(const char *name_or_path, struct hw *out) {
    const struct hw_preset *preset = hw_find_preset(name_or_path);
    if (preset) return hw_parse(preset->text, preset->size, preset->name, out);
    struct span bytes;
    if (!strpbrk(name_or_path, "/.")) {
        // A bare word: a file of that name, or more likely a misspelt preset.
        npu_status st = file_map(name_or_path, &bytes);
        if (npu_status_code(st) == NPU_NO_MEMORY) return st;
        if (st) {
            npu_status_free(st);
            const char *names[64];
            int n = 0;
            for (; n < hw_npreset && n < 64; n++)
                names[n] = hw_presets[n].name;
            const char *meant = text_did_you_mean(name_or_path, names, (size_t)n);
            return npu_fail(BAD_INPUT,
                            "'%s' is neither a target nor a file%s%s%s; targets: "
                            "tiny, edge, mid, server and those of --list targets",
                            name_or_path, meant ? "; did you mean '" : "", meant ? meant : "",
                            meant ? "'?" : "");
        }
    } else {
        NPU_TRY_NOTE(file_map(name_or_path, &bytes), "reading a hardware description");
    }
    npu_status st = hw_parse((const char *)bytes.data, bytes.size, name_or_path, out);
    file_unmap(bytes);
    return st;
}

npu_status hw_set_text(struct hw *hw, const char *assignment, unsigned classes) {
    const char *eq = strchr(assignment, '=');
    if (!eq) return npu_fail(USAGE, "--set %s: GROUP.NAME=VALUE is expected", assignment);
    struct str why = {0};
    npu_status st = NULL;
    const struct hw_param_desc *p = hw_find(assignment, (size_t)(eq - assignment));
    int64_t value = 0;
    if (!p) {
        char key[2 * MAX_KEY];
        (void)snprintf(key, sizeof key, "%.*s", (int)(eq - assignment), assignment);
        hw_explain_unknown(key, &why);
        st = npu_fail(USAGE, "--set %s: %s", assignment, str_text(&why));
    } else if (!(classes >> p->cls & 1)) {
        st = npu_fail(USAGE,
                      "--set %s: %s changes what a program may do; recompile for the machine "
                      "(npuc --set)",
                      assignment, p->key);
    } else if (!hw_read_value(p, eq + 1, &value, &why)) {
        st = npu_fail(USAGE, "--set %s: %s", p->key, str_text(&why));
    } else {
        hw_set(hw, p, value);
    }
    str_free(&why);
    return st;
}

void hw_print_presets(struct str *out) {
    for (int i = 0; i < hw_npreset; i++) {
        str_printf(out, "%s", hw_presets[i].name);
        str_pad_to(out, 24);
        const char *line = hw_presets[i].text + strspn(hw_presets[i].text, "# ");
        str_printf(out, "%.*s\n", (int)strcspn(line, "\n"), line);
    }
}
