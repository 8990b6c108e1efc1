/* The manifest as text, one directive per line. See manifest.h. */
#include "artifact/manifest.h"

#include "artifact/manifest_writer.h"
#include "plan/launch.h"

#include <frt_manifest.h>
#include <inttypes.h>
#include <stdio.h>

_Static_assert((int)PLAN_MAX_TENSORS <= (int)FRT_MAX_TENSORS, "a plan's tensors have room");

const char manifest_too_many[] = "tensors in one graph";

bool manifest_may_hold(const Graph *graph, uint32_t n_buffers, Diags *diags) {
    if (n_buffers <= FRT_MAX_TENSORS) return true;
    return line_report_limit(diags, graph->source, graph->span, manifest_too_many, FRT_MAX_TENSORS);
}

/* The head. */

static const char *const runtimes[DEVICE_COUNT] = {
#define DEVICE(sym, artifact, runtime, ...) [DEVICE_##sym] = FRT_TARGET_##runtime,
#include "machine/devices.def"
};

/* Instruction sets: of a machine, and beyond it. */
static void put_machine(Writer *w, const Target *target) {
    line_word(w, target->machine);
    if (target->features) line_word(w, target->features);
}

static void write_levels(Writer *w) {
    const Target *target = w->input->target;
    for (uint32_t i = 0; target_n_levels(target) > 1 && i < target_n_levels(target); i++) {
        line_begin(w, FRT_D_LEVEL);
        line_word(w, target_level(target, i)->name);
        put_machine(w, target_level(target, i));
        line_end(w);
    }
}

static void write_head(Writer *w) {
    const Target *target = w->input->target;
    const char *source = w->module->source->name, *slash = strrchr(source, '/');
    line_begin(w, FRT_D_ARTIFACT);
    line_int(w, FRT_MANIFEST_VERSION);
    line_end(w);
    line_begin(w, FRT_D_CHECKSUM);
    text_printf(&w->text, " %0*d", FRT_CHECKSUM_DIGITS, 0);
    line_end(w);
    line_begin(w, FRT_D_COMPILER);
    line_word(w, w->input->compiler);
    line_end(w);
    line_begin(w, FRT_D_TARGET);
    line_word(w, runtimes[target->device]);
    put_machine(w, target);
    line_end(w);
    write_levels(w);
    line_begin(w, FRT_D_NUMERICS);
    line_word(w, w->input->numerics);
    line_end(w);
    line_begin(w, FRT_X_REWRITES);
    line_word(w, w->input->rewrites ? FRT_REWRITES_ON : FRT_REWRITES_OFF);
    line_end(w);
    line_begin(w, FRT_D_SOURCE);
    line_name(w, slash && slash[1] ? slash + 1 : source); /* without its folder, so that the bytes
                                                           * do not depend on it */
    line_end(w);
    if (!w->module->weights) return;
    line_begin(w, FRT_D_WEIGHTS);
    line_name(w, w->module->weights);
    line_end(w);
}

static void write_dims(Writer *w) {
    for (uint32_t i = 0; i < dim_n_symbols(w->dims); i++) {
        const DimSymbol *symbol = dim_symbol_info(w->dims, i);
        if (symbol->rule) continue;
        line_begin(w, FRT_D_DIM);
        line_name(w, symbol->name);
        line_int(w, symbol->lo);
        line_int(w, symbol->hi);
        line_int(w, symbol->multiple);
        line_end(w);
    }
}

/* Graphs. */

void manifest_write_graph_line(Writer *w, const Graph *graph) {
    w->graph = graph;
    line_begin(w, FRT_D_GRAPH);
    line_name(w, graph->name);
    line_end(w);
}

static void write_buffers(Writer *w, const Plan *plan) {
    manifest_write_buffers_of(w, plan, false);
    manifest_write_buffers_of(w, plan, true);
    uint32_t n_pieces = manifest_write_pieces(w, plan), n_parts = manifest_write_parts(w, plan);
    if (plan->buffers.n + n_pieces + n_parts > FRT_MAX_TENSORS)
        line_fail_limit(w, manifest_too_many, FRT_MAX_TENSORS);
    manifest_write_in_place(w, plan);
    line_begin(w, FRT_D_WORKSPACE);
    text_puts(&w->text, " ");
    if (plan->workspace.n)
        line_largest(w, plan->workspace.data, plan->workspace.n);
    else
        text_puts(&w->text, "0");
    line_end(w);
}

static void write_graph(Writer *w, const Graph *graph, const Plan *plan) {
    manifest_write_graph_line(w, graph);
    write_buffers(w, plan);
    for (uint32_t i = 0; i < plan->launches.n && !w->failed; i++)
        manifest_write_launch(w, plan, &plan->launches.data[i]);
    w->graph = NULL;
}

/* Writes a graph of the module, and returns the number of its plans. */
static uint32_t write_plans(Writer *w, uint32_t graph, const Plan *const *plans) {
    Sequence *sequence = w->input->sequences ? w->input->sequences[graph] : NULL;
    if (!sequence) {
        write_graph(w, w->module->graphs.data[graph], plans[0]);
        return 1;
    }
    manifest_write_sequence(w, sequence, plans);
    return sequence->graphs.n;
}

const char *manifest_text(Arena *arena, const ManifestInput *input, Diags *diags) {
    const Module *module = input->module;
    Writer w = {.input = input,
                .module = module,
                .dims = module->dims,
                .diags = diags,
                .text = {.arena = arena}};
    write_head(&w);
    write_dims(&w);
    if (module->graphs.n > FRT_MAX_GRAPHS) line_fail_limit(&w, "graphs", FRT_MAX_GRAPHS);
    const Plan *const *plans = input->plans;
    for (uint32_t i = 0; i < module->graphs.n && !w.failed; i++) plans += write_plans(&w, i, plans);
    line_begin(&w, FRT_D_END);
    line_end(&w);
    if (w.n_refs > FRT_MAX_REFS) line_fail_limit(&w, "launch arguments", FRT_MAX_REFS);
    if (w.text.n_bytes > FRT_MAX_TEXT_BYTES)
        line_fail_limit(&w, "bytes in its manifest", FRT_MAX_TEXT_BYTES);
    return w.failed ? NULL : text_str(&w.text);
}

/* The checksum. */

/* `tables[k][byte]`: what the byte adds to the checksum k bytes later. */
enum { CRC_SLICES = 8 };
typedef uint32_t CrcTables[CRC_SLICES][256];

static void make_crc_tables(CrcTables tables) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
        tables[0][byte] = crc;
    }
    for (uint32_t k = 1; k < CRC_SLICES; k++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][before & 255];
        }
}

/* Takes eight bytes at a time, whose table lookups do not wait for each other. */
static uint32_t crc32c(const char *bytes, size_t n_bytes) {
    CrcTables tables;
    make_crc_tables(tables);
    const unsigned char *at = (const unsigned char *)bytes, *end = at + n_bytes;
    uint32_t crc = UINT32_MAX;
    for (; end - at >= CRC_SLICES; at += CRC_SLICES) {
        uint32_t next = 0;
        for (uint32_t k = 0; k < CRC_SLICES; k++) {
            uint32_t byte = at[k] ^ (k < sizeof crc ? crc >> (8 * k) & 255 : 0);
            next ^= tables[CRC_SLICES - 1 - k][byte];
        }
        crc = next;
    }
    for (; at < end; at++) crc = crc >> 8 ^ tables[0][(crc ^ *at) & 255];
    return ~crc;
}

/* The first occurrence of `needle` at or after `from`; NULL: there is none. */
static char *find(char *bytes, size_t n_bytes, const char *needle, char *from) {
    size_t n = strlen(needle);
    for (char *end = bytes + n_bytes; (size_t)(end - from) >= n; from++) {
        from = memchr(from, needle[0], (size_t)(end - from));
        if (!from || (size_t)(end - from) < n) return NULL;
        if (memcmp(from, needle, n) == 0) return from;
    }
    return NULL;
}

bool manifest_seal(char *artifact, size_t n_bytes) {
    char head[128];
    int n_head = snprintf(head, sizeof head, "%s%s %d\n%s%s ", FRT_MANIFEST_PREFIX, FRT_D_ARTIFACT,
                          FRT_MANIFEST_VERSION, FRT_MANIFEST_PREFIX, FRT_D_CHECKSUM);
    char *at = find(artifact, n_bytes, head, artifact);
    if (!at || (size_t)(artifact + n_bytes - at) < (size_t)n_head + FRT_CHECKSUM_DIGITS)
        return false;
    if (find(artifact, n_bytes, head, at + 1)) return false;
    char *digits = at + n_head;
    memset(digits, '0', FRT_CHECKSUM_DIGITS);
    uint32_t crc = crc32c(artifact, n_bytes);
    for (int i = 0; i < FRT_CHECKSUM_DIGITS; i++)
        digits[i] = "0123456789abcdef"[crc >> (28 - 4 * i) & 15];
    return true;
}
