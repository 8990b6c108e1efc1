/* The report's page and the DOT picture: complete, well formed, and safe whatever names hold. */
#include "report/dot.h"
#include "report/drawing.h"
#include "report/parts.h"

#include "lib/plans.h"
#include "lib/text_file.h"
#include "random/random_graph.h"

#include <criterion/criterion.h>
#include <stdio.h>

typedef struct Fixture {
    Arena *arena;
    Module *module;
    PricedPlan before, after;
    LedgerInput ledger;
    ReportGraph graph;
    Report report;
} Fixture;

static Fixture fixture_new(const char *source, TargetId target) {
    Fixture f = {.arena = arena_new(NULL)};
    f.module = plans_parse(f.arena, source);
    const Card *card = card_of_target(target_get(target));
    f.before = plans_price(f.arena, f.module, 0, true, target, card, NULL);
    f.after = plans_price(f.arena, f.module, 0, false, target, card, NULL);
    f.ledger = (LedgerInput){.cost = f.after.cost,
                             .unfused_cost = f.before.cost,
                             .advices = advice_settle(f.arena, f.after.plan, NULL)};
    f.graph = (ReportGraph){.before = {.plan = f.before.plan, .cost = f.before.cost},
                            .after = {.plan = f.after.plan, .cost = f.after.cost}};
    f.report = (Report){.source = "model.g",
                        .target = target_get(target)->name,
                        .compiler = "0",
                        .card = card,
                        .dims = f.after.cost->dims,
                        .n_graphs = 1};
    return f;
}

static const char *page_of(Fixture *f) {
    Text text = {.arena = f->arena};
    f->graph.ledger = ledger_new(f->arena, &f->ledger);
    f->report.graphs = &f->graph;
    report_print(f->arena, &f->report, &text);
    return text_str(&text);
}

/* Tags nest, attributes are quoted, and no character stands that must not. */
static void expect_well_formed(const char *page) {
    char open[64][32];
    int depth = 0;
    const char *at = strchr(page, '\n') + 1; /* after the doctype */
    const char *style = strstr(page, "<style>"), *style_end = strstr(page, "</style>");
    while (*at) {
        if (at > style && at < style_end) at = style_end;
        cr_assert(*at != '&' || strchr(at, ';'), "a bare & at %.40s", at);
        if (*at++ != '<') continue;
        bool closes = *at == '/';
        size_t n = strspn(at + closes, "abcdefghijklmnopqrstuvwxyz0123456789");
        const char *end = at + closes + n;
        cr_assert(n > 0 && n < sizeof open[0], "a bare < at %.40s", at);
        for (bool is_quoted = false; *end && (is_quoted || *end != '>'); end++) {
            cr_assert(*end != '<', "a < in a tag at %.60s", at);
            if (*end == '"') is_quoted = !is_quoted;
        }
        if (closes) {
            cr_assert(depth > 0);
            depth--;
            cr_assert(strlen(open[depth]) == n && strncmp(open[depth], at + 1, n) == 0,
                      "%s is closed by %.30s", open[depth], at);
        } else if (end[-1] != '/') {
            cr_assert(depth < 64);
            snprintf(open[depth++], sizeof open[0], "%.*s", (int)n, at);
        }
        at = end + 1;
    }
    cr_expect(depth == 0, "%s is never closed", open[depth > 0 ? depth - 1 : 0]);
}

static uint32_t count(const char *text, const char *what) {
    uint32_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

static void expect_holds(const char *page, const char *what) {
    cr_expect(strstr(page, what), "no `%s` in the page", what);
}

/* Every kernel that starts, edge and total of the ledger. */
static void expect_complete(const Fixture *f, const char *page) {
    const Plan *plan = f->after.plan;
    uint32_t n_edges = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const KernelCost *cost = &f->after.cost->kernels[k];
        const Kernel *kernel = &plan->kernels.data[k];
        if (kernel->choice && !kernel_starts(plan, kernel, f->after.cost->dims)) continue;
        expect_holds(page, str_format(f->arena, "<a href=\"#g0ak%u\">%s</a>", k,
                                      plan->kernels.data[k].name));
        expect_holds(page, str_format(f->arena, "id=\"g0ak%u\"", k));
        expect_holds(page, human_us(f->arena, cost->us));
        expect_holds(page, human_bytes(f->arena, cost->read_bytes + cost->written_bytes));
    }
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Edge *edge = &plan->edges.data[i];
        if (graph_node(plan->graph, edge->producer)->op == OP_CONST) continue;
        n_edges++;
        expect_holds(page, reason_info(edge->reason)->id);
    }
    cr_expect_eq(count(page, "<span class=\"verdict "), n_edges);
    expect_holds(page, human_us(f->arena, f->before.cost->us));
    expect_holds(page, human_bytes(f->arena, f->after.cost->least_bytes));
    expect_holds(page, human_bytes(f->arena, f->after.cost->workspace_bytes));
    expect_holds(page, human_bytes(f->arena, f->before.cost->workspace_bytes));
}

Test(report, holds_the_whole_ledger_of_every_example) {
    static const char *const paths[] = {"dsl/examples/softmax.g",      "dsl/examples/digits.g",
                                        "dsl/examples/transformer.g",  "dsl/examples/views.g",
                                        "dsl/examples/blackscholes.g", "dsl/examples/heat2d.g"};
    static const TargetId targets[] = {TARGET_SM_80, TARGET_CPU};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        for (size_t t = 0; t < 2; t++) {
            Arena *own = arena_new(NULL);
            Fixture f = fixture_new(text_file_read(own, paths[i], NULL), targets[t]);
            const char *page = page_of(&f);
            expect_well_formed(page);
            expect_complete(&f, page);
            cr_expect_str_eq(page, page_of(&f), "%s: not the same twice", paths[i]);
            cr_expect(!strstr(page, "http://") || count(page, "http://") == count(page, "xmlns="),
                      "%s: the page refers to something outside", paths[i]);
            cr_expect(!strstr(page, "<script") && !strstr(page, "url("), "%s", paths[i]);
            arena_free(f.arena);
            arena_free(own);
        }
}

/* Braces and quotes balance, and every edge joins nodes that are there. */
static void expect_dot(const char *dot, uint64_t seed) {
    int depth = 0;
    bool is_quoted = false;
    for (const char *at = dot; *at; at++) {
        if (is_quoted && *at == '\\')
            at++;
        else if (*at == '"')
            is_quoted = !is_quoted;
        else if (!is_quoted)
            depth += (*at == '{') - (*at == '}');
        cr_assert(depth >= 0, "seed %llu", (unsigned long long)seed);
    }
    cr_expect(depth == 0 && !is_quoted, "seed %llu:\n%s", (unsigned long long)seed, dot);
    for (const char *arrow = dot; (arrow = strstr(arrow, " -> ")); arrow += 4) {
        const char *from = arrow;
        while (from[-1] != ' ') from--;
        char name[2][64];
        snprintf(name[0], sizeof name[0], " %.*s [", (int)(arrow - from), from);
        snprintf(name[1], sizeof name[1], " %.*s [", (int)strcspn(arrow + 4, " ;"), arrow + 4);
        for (int i = 0; i < 2; i++) {
            const char *found = dot;
            bool is_node = false;
            while (!is_node && (found = strstr(found, name[i]))) {
                is_node = strncmp(found - 3, " ->", 3) != 0;
                found++;
            }
            cr_assert(is_node, "seed %llu: no node%s", (unsigned long long)seed, name[i]);
        }
    }
}

Test(report, random_graphs_make_whole_pages) {
    enum { N_GRAPHS = 60 };
    for (uint64_t seed = 1; seed <= N_GRAPHS; seed++) {
        Arena *own = arena_new(NULL);
        Fixture f =
            fixture_new(random_graph_source(own, seed, NULL), seed % 2 ? TARGET_SM_80 : TARGET_CPU);
        const char *page = page_of(&f);
        expect_well_formed(page);
        expect_complete(&f, page);
        Text dot = {.arena = own};
        const Plan *plan = f.after.plan;
        dot_print(own, &plan, 1, &dot);
        expect_dot(text_str(&dot), seed);
        arena_free(f.arena);
        arena_free(own);
    }
}

Test(report, names_are_text_whatever_they_hold) {
    Fixture f = fixture_new("weights \"w.safetensors\"\n"
                            "graph g(x: f32[4, 4]) -> (y: f32[4, 4]) {\n"
                            "  param w: f32[4, 4] = \"</title><script>alert('&')</script>\"\n"
                            "  y = x @ w + 1\n}\n",
                            TARGET_SM_80);
    f.report.source = "<script>\"a\" & \x01\xFF\xC0\x80\xED\xA0\x80.g";
    double us[4] = {1, 2, 3, 4};
    f.graph.before.measured_us = f.graph.after.measured_us = us;
    f.graph.before.n_measured = f.before.cost->n_launches;
    f.graph.after.n_measured = f.after.cost->n_launches;
    f.report.device = "<img src=x onerror='y'>";
    const char *page = page_of(&f);
    expect_well_formed(page);
    cr_expect(!strstr(page, "<script") && !strstr(page, "<img"));
    expect_holds(page, "&lt;script&gt;&quot;a&quot; &amp; \xEF\xBF\xBD\xEF\xBF\xBD");
    expect_holds(page, "&lt;/title&gt;&lt;script&gt;alert(&#39;&amp;&#39;)");
    cr_expect(!strchr(page, '\x01') && !strstr(page, "\xED\xA0"));
    arena_free(f.arena);
}

Test(report, measured_launches_make_a_roofline) {
    Fixture f = fixture_new("graph g(x: bf16[512, 512], w: bf16[512, 512]) -> (y: bf16[512, 512]) "
                            "{\n  y = softmax(x @ w, axis=1)\n}\n",
                            TARGET_SM_80);
    cr_expect(!strstr(page_of(&f), "Roofline"));
    double before[32], after[32];
    cr_assert(f.before.cost->n_launches <= 32 && f.after.cost->n_launches <= 32);
    for (int i = 0; i < 32; i++) before[i] = 10.25 + i, after[i] = 50.5 + i;
    f.graph.before.measured_us = before;
    f.graph.after.measured_us = after;
    f.graph.before.n_measured = f.before.cost->n_launches;
    f.graph.after.n_measured = f.after.cost->n_launches;
    const char *page = page_of(&f);
    expect_well_formed(page);
    expect_holds(page, "<h3>Roofline</h3>");
    expect_holds(page, "50.5 \xC2\xB5s");
    uint32_t n = f.before.cost->n_launches + f.after.cost->n_launches;
    cr_expect_eq(count(page, "<circle class=\"spot "), n + 2, "two more are the legend's");
    arena_free(f.arena);
}

Test(report, numbers_are_short_and_have_a_point) {
    Arena *arena = arena_new(NULL);
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {{0, "0 B"},        {7, "7 B"},         {999, "999 B"},    {999.6, "1 kB"},
                 {1536, "1.54 kB"}, {12345, "12.3 kB"}, {99960, "100 kB"}, {1e6, "1 MB"},
                 {4.5e9, "4.5 GB"}, {9.3e18, "9.3 EB"}, {0.25, "0.25 B"},  {1e24, "1000000 EB"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_expect_str_eq(human_bytes(arena, cases[i].bytes), cases[i].text);
    cr_expect_str_eq(human_us(arena, 12.34), "12.3 \xC2\xB5s");
    cr_expect_str_eq(human_ratio(arena, 10, 4), "2.5\xC3\x97");
    cr_expect_str_eq(human_ratio(arena, 10, 0), "-");
    cr_expect_str_eq(svg_shorten(arena,
                                 "a\xC3\xA4"
                                 "bcd",
                                 3),
                     "a\xC3\xA4\xE2\x80\xA6");
    cr_expect_str_eq(svg_shorten(arena, "abc", 3), "abc");
    arena_free(arena);
}

/* What flows in a kernel is what its ops take, and what it stores comes from one of them. */
Test(report, pictures_have_every_op_and_every_value) {
    Arena *own = arena_new(NULL);
    Fixture f = fixture_new(text_file_read(own, "dsl/examples/transformer.g", NULL), TARGET_SM_80);
    const Picture *picture = picture_new(f.arena, f.after.plan, NULL);
    bool *is_drawn = arena_array(f.arena, bool, f.after.plan->graph->nodes.n);
    uint32_t n_kernels = 0;
    for (uint32_t l = 0; l < picture->launches.n; l++) n_kernels += picture->launches.data[l].n;
    cr_expect_eq(n_kernels, f.after.plan->kernels.n);
    for (uint32_t k = 0; k < picture->kernels.n; k++) {
        const PictureKernel *kernel = &picture->kernels.data[k];
        uint32_t n_reads = 0, n_stores = 0;
        for (uint32_t i = 0; i < kernel->items.n; i++) {
            const Item *item = &kernel->items.data[i];
            n_reads += item->kind == ITEM_READ;
            n_stores += item->kind == ITEM_STORE;
            is_drawn[item->node] = true;
            bool has_flow = false;
            for (uint32_t e = 0; e < kernel->flows.n; e++) {
                cr_expect_lt(kernel->flows.data[e].from, kernel->flows.data[e].to);
                has_flow =
                    has_flow || kernel->flows.data[e].from == i || kernel->flows.data[e].to == i;
            }
            cr_expect(has_flow, "%s of kernel %s hangs in the air", item->label,
                      kernel->kernel->name);
        }
        cr_expect_eq(n_reads + n_stores, kernel->kernel->args.n, "%s", kernel->kernel->name);
    }
    for (NodeId id = 0; id < f.after.plan->graph->nodes.n; id++)
        if (graph_node(f.after.plan->graph, id)->op != OP_CONST)
            cr_expect(is_drawn[id], "node %u is not drawn", id);
    arena_free(f.arena);
    arena_free(own);
}

static bool has_op(const PictureKernel *kernel, const char *label) {
    for (uint32_t i = 0; i < kernel->items.n; i++)
        if (kernel->items.data[i].kind == ITEM_OP &&
            strcmp(kernel->items.data[i].label, label) == 0)
            return true;
    return false;
}

/* An init step that lays weights out anew: param, pack, what is prepared. The product stays in the
 * product's box, beside its operands, and the step counts in no launch. */
static void expect_packed(const char *source, TargetId target) {
    Fixture f = fixture_new(source, target);
    const Picture *picture = picture_new(f.arena, f.after.plan, NULL);
    uint32_t n_init = f.after.cost->n_init;
    cr_assert_gt(n_init, 0);
    cr_expect_eq(picture->n_init, n_init);
    for (uint32_t k = 0; k < picture->kernels.n; k++) {
        const PictureKernel *kernel = &picture->kernels.data[k];
        bool is_matmul = kernel->kernel->form == FORM_GEMM;
        cr_expect_eq(has_op(kernel, "pack"), k < n_init, "%s", kernel->kernel->name);
        cr_expect_eq(has_op(kernel, "matmul"), is_matmul, "%s", kernel->kernel->name);
        cr_expect(!has_op(kernel, "x = input"), "%s", kernel->kernel->name);
        cr_expect(k >= n_init || kernel->n_ops == 1, "%s", kernel->kernel->name);
        if (k < n_init)
            cr_expect_eq(
                graph_node(f.after.plan->graph, plan_laid_out(f.after.plan, kernel->kernel))->op,
                OP_PARAM);
    }
    const char *page = page_of(&f);
    expect_holds(page, str_format(f.arena, "after %u init step", n_init));
    expect_holds(page, str_format(f.arena, "<s>%u \xE2\x86\x92 </s>%u</p>",
                                  f.before.cost->n_launches, f.after.cost->n_launches));
    arena_free(f.arena);
}

Test(report, laid_out_weights_are_drawn_as_what_they_are) {
    Arena *own = arena_new(NULL);
    expect_packed(text_file_read(own, "dsl/examples/digits.g", NULL), TARGET_CPU);
    expect_packed("dim B in 1..65536\ngraph g(x: bf16[B, 1024]) -> (y: bf16[B, 1001]) {\n"
                  "  param w: bf16[1024, 1001] = \"w\"\n  y = relu(x @ w)\n}\n",
                  TARGET_SM_90A);
    arena_free(own);
}

/* So are copies that a run makes: of inputs whose rows may be odd. */
Test(report, copied_operands_are_drawn_as_copies) {
    Fixture f = fixture_new("dim M in 0..4096\ndim N in 0..4096\ndim K in 0..4096\n"
                            "graph g(x: bf16[M, K], w: bf16[N, K]) -> (y: bf16[M, N]) {\n"
                            "  y = x @ transpose(w)\n}\n",
                            TARGET_SM_90A);
    const Picture *picture = picture_new(f.arena, f.after.plan, NULL);
    uint32_t n_copies = 0;
    for (uint32_t k = 0; k < picture->kernels.n; k++) {
        const PictureKernel *kernel = &picture->kernels.data[k];
        bool is_matmul = kernel->kernel->form == FORM_GEMM;
        cr_expect_eq(has_op(kernel, "pack"), !is_matmul, "%s", kernel->kernel->name);
        cr_expect_eq(has_op(kernel, "y = matmul"), is_matmul, "%s", kernel->kernel->name);
        n_copies += !is_matmul;
    }
    cr_expect_eq(n_copies, 2);
    arena_free(f.arena);
}

/* An output stored in pieces comes from each kernel that stores one, and is counted once. */
Test(report, joined_outputs_have_all_their_makers) {
    Fixture f = fixture_new("graph g(x: f32[64, 2048], z: f32[64, 2048]) -> (y: f32[64, 4096]) {\n"
                            "  y = concat([softmax(x), softmax(z * 2.0)], axis=1)\n}\n",
                            TARGET_SM_80);
    Text dot = {.arena = f.arena};
    const Plan *plan = f.after.plan;
    dot_print(f.arena, &plan, 1, &dot);
    cr_expect_eq(count(text_str(&dot), "-> g0b2 "), 2, "%s", text_str(&dot));
    cr_expect_eq(count(text_str(&dot), "[label=\"  524288 bytes\\l\""), 2, "%s", text_str(&dot));
    const double bytes = 4.0 * 64 * 2048;
    cr_expect_eq(f.after.cost->least_bytes, 4 * bytes, "%.0f", f.after.cost->least_bytes);
    cr_expect_eq(f.after.cost->n_launches, 1);
    arena_free(f.arena);
}

/* Graphviz keeps nodes out of boxes and of one another's way, labels of edges it does not: what
 * passes between kernels is a node, in the box of its launch where it stays within the launch. */
Test(report, no_edge_of_the_dot_has_a_label) {
    Arena *own = arena_new(NULL);
    Fixture f = fixture_new(text_file_read(own, "dsl/examples/transformer.g", NULL), TARGET_SM_90A);
    Text text = {.arena = f.arena};
    const Plan *plan = f.after.plan;
    dot_print(f.arena, &plan, 1, &text);
    const char *dot = text_str(&text);
    uint32_t n_arrows = 0, n_temps = 0, n_off_memory = 0;
    for (const char *at = dot; (at = strstr(at, " -> ")); n_arrows++) {
        const char *end = strchr(at, '\n');
        at += 4;
        const char *label = strstr(at, "label=");
        cr_expect(!label || label > end, "%.*s", (int)(end - at), at);
    }
    for (uint32_t b = 0; b < plan->buffers.n; b++) {
        const Buffer *buffer = &plan->buffers.data[b];
        const char *node = strstr(dot, str_format(own, " g0b%u [", b));
        const char *words = buffer->space != BUFFER_GLOBAL
                                ? str_format(own, "\"%s within the launch\"", buffer->name)
                                : str_format(own, "\"%s\\n", buffer->name);
        cr_assert(node, "no %s in\n%s", buffer->name, dot);
        cr_expect_eq(count(dot, str_format(own, " g0b%u [", b)),
                     count(dot, str_format(own, "-> g0b%u [", b)) + 1);
        cr_expect_lt(strstr(node, words), strchr(node, '\n'), "%s", words);
        n_temps += buffer->kind == BUFFER_TEMP && buffer->space == BUFFER_GLOBAL;
        n_off_memory += buffer->space != BUFFER_GLOBAL;
    }
    cr_expect(n_arrows > 50 && n_temps > 5 && n_off_memory > 0);
    arena_free(f.arena);
    arena_free(own);
}

/* Nothing comes down from the upper side where a title stands, in boxes of kernels and of launches;
 * and pieces of an output have their own bytes. */
static void expect_titles_free(const Fixture *f, const Picture *picture) {
    Page page = {.arena = f->arena, .report = &f->report, .graph = &f->graph};
    Drawing d = {.page = &page, .side = &f->graph.after, .picture = picture, .arena = f->arena};
    drawing_place(&d);
    for (uint32_t l = 0; l < picture->launches.n; l++) {
        const PictureLaunch *launch = &picture->launches.data[l];
        for (uint32_t i = 0; i <= launch->n; i++) {
            bool is_launch = i == launch->n;
            if (is_launch && launch->n == 1) continue;
            const Box *box = is_launch ? &d.launches[l] : &d.kernels[launch->kernels[i]];
            const char *title = is_launch ? drawing_launch_title(&d, l)
                                          : drawing_kernel_title(&d, launch->kernels[i]);
            double end = box->title_x + svg_text_width(title, FONT - 1);
            cr_expect(box->title_x > 0 && end < box->w, "%s is cut off", title);
            for (uint32_t k = 0; k < box->ports.n; k++) {
                const Port *port = &box->ports.data[k];
                if (port->is_store || drawing_buffer(&d, port->buffer)->kind == BUFFER_PARAM)
                    continue;
                cr_expect(port->x < box->title_x - 3 || port->x > end + 3, "a line through %s",
                          title);
            }
        }
    }
}

Test(report, no_line_runs_through_a_title) {
    Arena *own = arena_new(NULL);
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A, TARGET_CPU};
    for (size_t t = 0; t < 3; t++)
        for (uint64_t seed = 0; seed <= 12; seed++) {
            const char *source = seed ? random_graph_source(own, seed, NULL)
                                      : text_file_read(own, "dsl/examples/transformer.g", NULL);
            Fixture f = fixture_new(source, targets[t]);
            f.report.graphs = &f.graph;
            expect_titles_free(&f, picture_new(f.arena, f.after.plan, NULL));
            arena_free(f.arena);
        }
    arena_free(own);
}

/* What the text says of launches and of contracts the page says too. */
Test(report, tells_of_launches_and_contracts) {
    Fixture f = fixture_new("graph g(x: f32[1024, 2048], w: f32[2048, 2048], z: f32[1024, 2048], "
                            "v: f32[2048, 2048]) -> (p: f32[1024, 2048], q: f32[1024, 2048]) {\n"
                            "  fuse must { p = sqrt(x @ w) }\n  q = z @ v\n}\n",
                            TARGET_SM_80);
    const BlockPrice price = {.block = 0, .without = {.us = 1, .n_launches = 2}};
    vec_push(f.arena, &f.ledger.blocks, price);
    const char *page = page_of(&f);
    expect_well_formed(page);
    cr_expect(strstr(page, "[slower-launch]") && strstr(page, "one launch takes 1"), "%s", page);
    cr_expect(strstr(page, "us in 2 without: it makes the graph slower here"), "%s", page);
    arena_free(f.arena);
}

/* Every kernel has an op to stand for it, also one that only moves a value or stores a literal. */
Test(report, kernels_without_ops_are_drawn) {
    static const struct {
        const char *source, *label;
    } cases[] = {{"graph g(x: f32[64]) -> (y: f32[64]) { y = x }", "\"copy\""},
                 {"graph g(x: f32[64]) -> (y: f32) { y = const(1.5, f32) }", "\"y = const\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Fixture f = fixture_new(cases[i].source, TARGET_SM_80);
        Text dot = {.arena = f.arena};
        const Plan *plan = f.after.plan;
        dot_print(f.arena, &plan, 1, &dot);
        expect_dot(text_str(&dot), i);
        cr_expect(strstr(text_str(&dot), cases[i].label), "%s", text_str(&dot));
        expect_well_formed(page_of(&f));
        arena_free(f.arena);
    }
}

Test(report, the_dot_of_softmax_is_as_it_was) {
    Arena *arena = arena_new(NULL);
    Fixture f = fixture_new(text_file_read(arena, "dsl/examples/softmax.g", NULL), TARGET_SM_80);
    Text text = {.arena = arena};
    const Plan *plan = f.after.plan;
    dot_print(arena, &plan, 1, &text);
    cr_expect_str_eq(text_str(&text), text_file_read(arena, "tests/golden/softmax.dot", NULL));
    arena_free(f.arena);
    arena_free(arena);
}
