/* Every reason for a verdict, and what its advice does: for each id of plan/reasons.def a program
 * in which an edge has it, and the program after the advice, in which that edge has the other
 * verdict. For reasons why two launches are not one, a program in which they are two, and one with
 * fewer. */
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <stdlib.h>

typedef struct Flip {
    ReasonId reason;
    const char *producer, *consumer; /* names; consumer NULL: the output of that name */
    const char *before, *after;      /* after NULL: there is nothing to flip */
    bool off;                        /* before is compiled without fusion */
    enum { HOPPER, AMPERE, CPU } on; /* Ampere: where wgmma does not stand in the way of a chain */
} Flip;

/* Values that are all compared before each is used again: more than a thread has registers, or
 * few. */
static const char *compared(Arena *arena, bool is_after) {
    Text text = {.arena = arena};
    int n = is_after ? 30 : 300;
    text_puts(&text,
              "graph g(x: f32[4194304], z: f32[4194304]) -> (y: f32[4194304]) {\n  m0 = z\n");
    for (int i = 0; i < n; i++)
        text_printf(&text, "  v%d = x * %d.0 + z\n  m%d = maximum(m%d, v%d)\n", i, i + 1, i + 1, i,
                    i);
    text_printf(&text, "  m = m%d * 0.5\n  s0 = z - m\n", n);
    for (int i = 0; i < n; i++)
        text_printf(&text, "  s%d = s%d + (v%d - m) * v%d\n", i + 1, i, i, i);
    text_printf(&text, "  y = s%d * 1.0\n}\n", n);
    return text_str(&text);
}

/* More statements that read far back than fusion looks at, or few. */
static const char *far_back(Arena *arena, bool is_after) {
    Text text = {.arena = arena};
    int n = is_after ? 2 : 1200;
    text_puts(&text, "graph g(x: f32[1, 2, 8, 8]) -> (y: f32[1, 2, 8, 8]) {\n  h = x + 1.0\n"
                     "  v0 = h\n");
    for (int i = 1; i <= n; i++)
        text_printf(&text, "  v%d = interpolate(v%d, size=[8, 8], mode=\"bilinear\") + v%d\n", i,
                    i - 1, i / 2);
    text_printf(&text, "  y = v%d * h\n}\n", n);
    return text_str(&text);
}

/* Sizes too large for a one-block launch, which would pass values in shared memory. */
#define MANY "1000000"
#define TEN_INPUTS(n)                                                                             \
    n "0: f32[" MANY "], " n "1: f32[" MANY "], " n "2: f32[" MANY "], " n "3: f32[" MANY "], " n \
      "4: f32[" MANY "], " n "5: f32[" MANY "], " n "6: f32[" MANY "], " n "7: f32[" MANY "], " n \
      "8: f32[" MANY "], " n "9: f32[" MANY "], "
#define TEN_TERMS(n) \
    n "0 + " n "1 + " n "2 + " n "3 + " n "4 + " n "5 + " n "6 + " n "7 + " n "8 + " n "9 + "

static const Flip flips[] = {
    {REASON_INLINED, "h", "y",
     "graph g(x: f32[64]) -> (y: f32[64]) {\n  h = exp(x)\n  y = relu(h)\n}",
     "graph g(x: f32[64]) -> (y: f32[64]) {\n  h = exp(x)\n  fuse never {\n    y = relu(h)\n  }\n}",
     false, HOPPER},
    {REASON_SAME_PASS, "s", "y",
     "graph g(x: f32[64, 64]) -> (y: f32[64, 64]) {\n  s = sum(x, axis=1, keep=true)\n  y = x - "
     "s\n}",
     "graph g(x: f32[64, 64]) -> (y: f32[64, 64]) {\n  s = sum(x, axis=1, keep=true)\n"
     "  fuse never { y = x - s }\n}",
     false, HOPPER},
    {REASON_VIEW, "t", "y",
     "graph g(x: f32[8, 64]) -> (y: f32[64, 8]) {\n  t = transpose(x)\n  y = relu(t)\n}",
     "graph g(x: f32[8, 64]) -> (y: f32[64, 8]) {\n  t = transpose(x)\n  fuse never { y = relu(t) "
     "}\n}",
     false, HOPPER},
    {REASON_CONCAT_IN_PLACE, "s", "y",
     "dim B in 1..65536\ngraph g(x: f32[B, 64], z: f32[B, 64]) -> (y: f32[B, 128]) {\n"
     "  s = softmax(x)\n  y = concat([s, z], axis=1)\n}",
     "dim B in 1..65536\ngraph g(x: f32[B, 64], z: f32[B, 64]) -> (y: f32[B, 128]) {\n"
     "  s = softmax(x)\n  fuse never { y = concat([s, z], axis=1) }\n}",
     false, HOPPER},
    {REASON_SLICE_STORE, "h", "a",
     "dim B in 1..65536\ngraph g(x: f32[B, 64]) -> (a: f32[B, 9], b: f32[B, 9]) {\n"
     "  h = softmax(x)\n  a = h[:, 0:9]\n  b = h[:, 9:18]\n}",
     "dim B in 1..65536\ngraph g(x: f32[B, 64]) -> (a: f32[B, 9], b: f32[B, 9]) {\n"
     "  h = softmax(x)\n  fuse never { a = h[:, 0:9] }\n  b = h[:, 9:18]\n}",
     false, HOPPER},
    {REASON_MATMUL_SLICE, "h", "a",
     "graph g(x: f32[64, 64], w: f32[64, 256]) -> (a: f32[64, 64]) {\n"
     "  h = x @ w\n  a = h[:, 64:128]\n}",
     "graph g(x: f32[64, 64], w: f32[64, 256]) -> (a: f32[64, 64]) {\n"
     "  h = x @ w\n  fuse never { a = h[:, 64:128] }\n}",
     false, HOPPER},
    {REASON_SAME_LAUNCH, "a", "y",
     "graph g(x: bf16[256, 256], u: bf16[256, 256], v: bf16[256, 256]) -> (y: bf16[256, 256]) {\n"
     "  a = x @ u\n  b = x @ v\n  y = a * b\n}",
     "graph g(x: bf16[256, 256], u: bf16[256, 256], v: bf16[256, 256]) -> (y: bf16[256, 256]) {\n"
     "  a = x @ u\n  b = x @ v\n  fuse never { y = a * b }\n}",
     false, AMPERE},
    {REASON_SAME_BLOCK, "a", "y",
     "graph g(x: bf16[256, 256], u: bf16[256, 256], v: bf16[256, 256])"
     " -> (a: bf16[256, 256], y: bf16[256, 256]) {\n"
     "  a = x @ u\n  b = x @ v\n  y = a * b\n}",
     "graph g(x: bf16[256, 256], u: bf16[256, 256], v: bf16[256, 256])"
     " -> (a: bf16[256, 256], y: bf16[256, 256]) {\n"
     "  a = x @ u\n  b = x @ v\n  fuse never { y = a * b }\n}",
     false, AMPERE},
    {REASON_BETWEEN, "a", "y",
     "graph g(x: bf16[512, 256], z: bf16[512, 256], u: bf16[256, 256], v: bf16[256, 256])"
     " -> (y: bf16[512, 256]) {\n  a = tanh(x @ u)\n  b = z @ v\n  y = a * b\n}",
     "graph g(x: bf16[512, 256], z: bf16[512, 256], u: bf16[256, 256], b: bf16[512, 256])"
     " -> (y: bf16[512, 256]) {\n  a = tanh(x @ u)\n  y = a * b\n}",
     false, HOPPER},
    {REASON_OUTPUT, "s", "y",
     "graph g(x: f32[64, 100]) -> (s: f32[64, 100], y: f32[100]) {\n"
     "  s = softmax(x, axis=1)\n  y = sum(s, axis=0)\n}",
     "graph g(x: f32[64, 100]) -> (y: f32[100]) {\n"
     "  s = softmax(x, axis=1)\n  y = sum(s, axis=0)\n}",
     false, HOPPER},
    {REASON_SOURCE, "x", "y", "graph g(x: f32[64]) -> (y: f32[64]) { y = -x }", NULL, false,
     HOPPER},
    {REASON_UNREAD, "i", "y",
     "graph g(x: f32[2, 8], z: f32[3, 1]) -> (i: i32[2], y: f32[3, 2]) {\n"
     "  i = argmax(x, axis=1)\n  y = gather(-z, i, axis=1)\n}",
     NULL, false, HOPPER},
    {REASON_FUSION_OFF, "h", "y",
     "graph g(x: f32[64]) -> (y: f32[64]) {\n  h = exp(x)\n  y = relu(h)\n}",
     "graph g(x: f32[64]) -> (y: f32[64]) {\n  h = exp(x)\n  y = relu(h)\n}", true, HOPPER},
    {REASON_OTHER_DOMAIN, "m", "y",
     "graph g(x: f32[2048, 1024]) -> (y: f32[1024, 2048]) {\n  m = max(x, axis=1)\n"
     "  y = transpose(x) - m\n}",
     "graph g(x: f32[2048, 1024]) -> (y: f32[2048, 1024]) {\n  m = max(x, axis=1, keep=true)\n"
     "  y = x - m\n}",
     false, HOPPER},
    {REASON_MISALIGNED, "m", "y",
     "graph g(x: f32[1024, 1024]) -> (y: f32[1024, 1024]) {\n  m = max(x, axis=1)\n  y = x - m\n}",
     "graph g(x: f32[1024, 1024]) -> (y: f32[1024, 1024]) {\n  m = max(x, axis=1, keep=true)\n  y "
     "= x - m\n}",
     false, HOPPER},
    {REASON_SCAN, "c", "y",
     "graph g(x: f32[256, 4096]) -> (y: f32[256, 4096]) {\n"
     "  c = cumsum(x, axis=1)\n  y = cummax(c, axis=1)\n}",
     "graph g(x: f32[256, 4096]) -> (y: f32[256, 4096], z: f32[256, 4096]) {\n"
     "  c = cumsum(x, axis=1)\n  y = relu(c)\n  z = cummax(x, axis=1)\n}",
     false, HOPPER},
    {REASON_UPDATED, "y", "z",
     "graph g(x: f32[256, 64], u: f32[1, 64], at: i32) -> (z: f32[256, 64]) {\n"
     "  y = dynamic_update_slice(x, u, [at, 0])\n  z = relu(y)\n}",
     NULL, false, HOPPER},
    {REASON_BETWEEN, "m", "y",
     "graph g(x: f32[256, 16384]) -> (y: f32[256, 16384]) {\n"
     "  m = max(x, axis=1, keep=true)\n  y = (x - sum(x, axis=0)) * m\n}",
     "graph g(x: f32[256, 16384], s: f32[16384]) -> (y: f32[256, 16384]) {\n"
     "  m = max(x, axis=1, keep=true)\n  y = (x - s) * m\n}",
     false, HOPPER},
    {REASON_FEW_ROWS, "s", "y",
     "graph g(x: f32[100000]) -> (y: f32[100000]) {\n  s = sum(x)\n  y = x / s\n}",
     "graph g(x: f32[10000]) -> (y: f32[10000]) {\n  s = sum(x)\n  y = x / s\n}", false, HOPPER},
    {REASON_SEGMENTS, "s", "y",
     "graph g(x: f32[100000, 65536]) -> (y: f32[100000, 65536]) {\n"
     "  s = sum(x, axis=0)\n  y = x / s\n}",
     "graph g(x: f32[60000, 65536]) -> (y: f32[60000, 65536]) {\n"
     "  s = sum(x, axis=0)\n  y = x / s\n}",
     false, HOPPER},
    /* an output, but that is not why */
    {REASON_SLOWER, "h", "s",
     "graph g(x: bf16[70001, 6], r: bf16[70001, 6]) -> (h: bf16[70001, 6], s: bf16[6]) {\n"
     "  h = x + r\n  s = sum(h, axis=0)\n}",
     "graph g(x: bf16[70001, 6], r: bf16[70001, 6]) -> (h: bf16[70001, 6], s: bf16[6]) {\n"
     "  fuse must {\n    h = x + r\n    s = sum(h, axis=0)\n  }\n}",
     false, HOPPER},
    {REASON_COSTLY, "e", "b",
     "graph g(x: f32[1000000]) -> (y: f32[999998]) {\n  e = sin(cos(tanh(exp(x))))\n  b = e[2:]\n  "
     "c = e[:-2]\n  y "
     "= b + "
     "c\n}",
     "graph g(x: f32[1000000]) -> (y: f32[999998]) {\n  e = sin(cos(tanh(exp(x))))\n  b = e[2:]\n  "
     "y = b + b\n}",
     false, HOPPER},
    {REASON_OPERAND, "c", "y",
     "graph g(x: f32[4096, 1024], w: bf16[1024, 1024])"
     " -> (y: bf16[4096, 1024], z: bf16[1024]) {\n"
     "  c = cast(x, bf16)\n  y = c @ w\n  z = max(c, axis=0)\n}",
     "graph g(x: f32[4096, 1024], w: bf16[1024, 1024])"
     " -> (y: bf16[4096, 1024], z: bf16[1024]) {\n"
     "  fuse must {\n    c = cast(x, bf16)\n    y = c @ w\n    z = max(c, axis=0)\n  }\n}",
     false, HOPPER},
    {REASON_SLOWER, "c", "y",
     "graph g(x: f32[4096, 1024], w: bf16[1024, 1024]) -> (y: bf16[4096, 1024]) {\n"
     "  c = cast(x, bf16)\n  y = c @ w\n}",
     "graph g(x: f32[4096, 1024], w: bf16[1024, 1024]) -> (y: bf16[4096, 1024]) {\n"
     "  fuse must {\n    c = cast(x, bf16)\n    y = c @ w\n  }\n}",
     false, HOPPER},
    {REASON_TILES, "h", "m",
     "graph g(x: f32[4096, 512], w: f32[512, 512], b: f32[512]) -> (y: f32[4096, 512]) {\n"
     "  h = relu(x @ w + b)\n  m = max(h, axis=1, keep=true)\n  y = h / m\n}",
     "graph g(x: f32[4096, 512], w: f32[512, 64], b: f32[64]) -> (y: f32[4096, 64]) {\n"
     "  fuse must {\n    h = relu(x @ w + b)\n    m = max(h, axis=1, keep=true)\n"
     "    y = h / m\n  }\n}",
     false, HOPPER},
    {REASON_TILES, "p", "m",
     "graph g(x: bf16[4096, 512], w: bf16[512, 512]) -> (y: bf16[4096, 512]) {\n"
     "  p = x @ w\n  m = max(p, axis=1, keep=true)\n  y = p - m\n}",
     "graph g(x: bf16[4096, 512], w: bf16[512, 64]) -> (y: bf16[4096, 64]) {\n"
     "  p = x @ w\n  m = max(p, axis=1, keep=true)\n  y = p - m\n}",
     false, HOPPER},
    {REASON_TILES, "p", "m",
     "graph g(x: bf16[4096, 512], w: bf16[512, 512]) -> (y: bf16[4096, 512]) {\n"
     "  p = x @ w\n  m = max(p, axis=1, keep=true)\n  y = p - m\n}",
     "graph g(x: bf16[4096, 512], w: bf16[512, 32]) -> (y: bf16[4096, 32]) {\n"
     "  p = x @ w\n  m = max(p, axis=1, keep=true)\n  y = p - m\n}",
     false, AMPERE},
    {REASON_TILES, "p", "m",
     "graph g(x: f32[4096, 64], w: f32[64, 513]) -> (y: f32[4096, 513]) {\n"
     "  p = x @ w\n  m = max(p, axis=1, keep=true)\n  y = p - m\n}",
     "graph g(x: f32[4096, 64], w: f32[64, 256]) -> (y: f32[4096, 256]) {\n"
     "  p = x @ w\n  m = max(p, axis=1, keep=true)\n  y = p - m\n}",
     false, CPU},
    {REASON_TILES, "p", "m",
     "graph g(x: f64[32, 64], w: f64[64, 257]) -> (y: f64[32, 257]) {\n"
     "  p = x @ w\n  m = max(p, axis=1, keep=true)\n  y = p - m\n}",
     "graph g(x: f64[32, 64], w: f64[64, 256]) -> (y: f64[32, 256]) {\n  fuse must {\n"
     "    p = x @ w\n    m = max(p, axis=1, keep=true)\n    y = p - m\n  }\n}",
     false, CPU},
    {REASON_SAME_LAUNCH, "p", "y",
     "graph g(x: f32[4096, 64], a: f32[64, 256], b: f32[64, 256]) -> (y: f32[4096, 256]) {\n"
     "  p = x @ a\n  q = x @ b\n  y = p * q\n}",
     "graph g(x: f32[4096, 64], a: f32[64, 256], b: f32[64, 256]) -> (y: f32[4096, 256]) {\n"
     "  p = x @ a\n  q = x @ b\n  fuse never { y = p * q }\n}",
     false, CPU},
    /* An output that its reader would have stored anyway does not blame the output. */
    {REASON_TILES, "h", "m",
     "graph g(x: f32[4096, 512], w: f32[512, 512], b: f32[512]) -> (h: f32[4096, 512], y: "
     "f32[4096, 512]) {\n"
     "  h = relu(x @ w + b)\n  m = max(h, axis=1, keep=true)\n  y = h / m\n}",
     "graph g(x: f32[4096, 512], w: f32[512, 64], b: f32[64]) -> (y: f32[4096, 64]) {\n"
     "  fuse must {\n    h = relu(x @ w + b)\n    m = max(h, axis=1, keep=true)\n"
     "    y = h / m\n  }\n}",
     false, HOPPER},
    {REASON_PREPARED, "h", "y",
     "graph g(x: f32[64, 64]) -> (y: f32[64, 64]) {\n  param w: f32[64, 64] = \"w\"\n"
     "  h = exp(sin(w))\n  y = x * h\n}",
     "graph g(x: f32[64, 64], w: f32[64, 64]) -> (y: f32[64, 64]) {\n"
     "  h = exp(sin(w))\n  y = x * h\n}",
     false, HOPPER},
    {REASON_CHEAP, "h", "y",
     "graph g(x: f32[1024, 64]) -> (y: f32[1024, 64]) {\n  param w: f32[64] = \"w\"\n"
     "  h = w + 1.0\n  y = x * h\n}",
     "graph g(x: f32[1024, 64]) -> (y: f32[1024, 64]) {\n  param w: f32[64] = \"w\"\n"
     "  h = w + 1.0\n  fuse never { y = x * h }\n}",
     false, HOPPER},
    {REASON_TOO_LARGE, "g1", "y",
     "graph g(" TEN_INPUTS("a") TEN_INPUTS("b")
         TEN_INPUTS("c") "d0: f32[" MANY "], d1: f32[" MANY "], "
                         "d2: f32[" MANY "]) -> (y: f32[" MANY "]) {\n  h = " TEN_TERMS("a")
                             TEN_TERMS("b") TEN_TERMS("c") "d0\n  g1 = h * d1\n  y = g1 * d2\n}",
     "graph g(a: f32[" MANY "], b: f32[" MANY "]) -> (y: f32[" MANY
     "]) {\n  g1 = a + b\n  y = g1 * a\n}",
     false, HOPPER},
    {REASON_SLOWER, "m", "y",
     "graph g(x: bf16[128, 262144]) -> (y: bf16[128, 262144]) {\n"
     "  m = max(x, axis=1, keep=true)\n  y = x - m\n}",
     "graph g(x: bf16[8192, 4096]) -> (y: bf16[8192, 4096]) {\n"
     "  m = max(x, axis=1, keep=true)\n  y = x - m\n}",
     false, HOPPER},
    {REASON_SPILLS, "m", "s0", "", "", false, HOPPER}, /* see compared */
    {REASON_SPENT, "h", "y", "", "", false, HOPPER},   /* see far_back */
    {REASON_FIXED, "h", "y",
     "graph g(x: f32[1000000]) -> (y: f32[1000000]) {\n  kernel a { h = exp(x) }\n  kernel b { y = "
     "relu(h) "
     "}\n}",
     "graph g(x: f32[1000000]) -> (y: f32[1000000]) {\n  kernel a { h = exp(x); y = relu(h) }\n}",
     false, HOPPER},
    {REASON_NEVER, "h", "y",
     "graph g(x: f32[64]) -> (y: f32[64]) {\n  fuse never { h = exp(x) }\n  y = relu(h)\n}",
     "graph g(x: f32[64]) -> (y: f32[64]) {\n  h = exp(x)\n  y = relu(h)\n}", false, HOPPER},
};

static bool is_called(const Graph *graph, NodeId id, const char *name) {
    const Node *node = graph_node(graph, id);
    return node->name && strcmp(node->name, name) == 0;
}

static const Edge *find_edge(const Plan *plan, const Flip *flip) {
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Edge *edge = &plan->edges.data[i];
        if (edge->consumer != NODE_NONE && is_called(plan->graph, edge->producer, flip->producer) &&
            is_called(plan->graph, edge->consumer, flip->consumer))
            return edge;
    }
    return NULL;
}

static const Edge *edge_of(Arena *arena, const Flip *flip, const char *source, bool off) {
    const Module *module = plans_parse(arena, source);
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80, TARGET_CPU};
    static const CardId cards[] = {CARD_H200, CARD_A100, CARD_CPU};
    PricedPlan priced =
        plans_price(arena, module, 0, off, targets[flip->on], card_get(cards[flip->on]), NULL);
    cr_assert(priced.plan, "%s", source);
    const Edge *edge = find_edge(priced.plan, flip);
    cr_assert(edge, "no edge from %s to %s in\n%s", flip->producer, flip->consumer, source);
    return edge;
}

Test(reasons, following_the_advice_flips_the_verdict) {
    for (size_t i = 0; i < sizeof flips / sizeof flips[0]; i++) {
        const Flip *flip = &flips[i];
        const ReasonInfo *info = reason_info(flip->reason);
        Arena *arena = arena_new(NULL);
        bool is_made = flip->before && !*flip->before;
        const char *(*make)(Arena *, bool) = flip->reason == REASON_SPENT ? far_back : compared;
        const char *before_text = is_made ? make(arena, false) : flip->before;
        const char *after_text = is_made ? make(arena, true) : flip->after;
        const Edge *before = edge_of(arena, flip, before_text, flip->off);
        cr_expect(before->reason == flip->reason, "%s, but wanted %s:\n%s",
                  reason_info(before->reason)->id, info->id, before_text);
        cr_expect((info->step[0] || info->advice[0]) == (after_text != NULL), "%s: %s%s", info->id,
                  info->step, info->advice);
        if (after_text) {
            const Edge *after = edge_of(arena, flip, after_text, false);
            cr_expect(before->verdict != after->verdict, "%s: still %s, %s\n%s", info->id,
                      after->verdict == EDGE_FUSED ? "fused" : "stored",
                      reason_info(after->reason)->id, after_text);
        }
        arena_free(arena);
    }
}

/* Launches that are apart, and the program after the advice, or as what would have to be different
 * says. */
typedef struct Joined {
    ReasonId reason;
    const char *before, *after;
    uint32_t n_before, n_after; /* launches */
    TargetId target;
} Joined;

static const Joined joins[] = {
    {REASON_OTHER_LOOPS,
     "dim B in 1..65536\ngraph g(x: f32[B, 64], z: f32[B, 64]) -> (p: f32[B], q: f32[B, 64]) {\n"
     "  p = max(x, axis=1)\n  q = exp(z)\n}",
     "dim B in 1..65536\ngraph g(x: f32[B, 64], z: f32[B, 64]) -> (p: f32[B], q: f32[B]) {\n"
     "  p = max(x, axis=1)\n  q = sum(exp(z), axis=1)\n}",
     2, 1, TARGET_SM_80},
    {REASON_OTHER_LOOPS,
     "dim B in 1..4096\ngraph g(x: bf16[B, 256], w: bf16[256, 256], z: f32[B, 256], v: f32[256, "
     "256]) -> (p: bf16[B, 256], q: f32[B, 256]) {\n  p = x @ w\n  q = z @ v\n}",
     "dim B in 1..4096\ngraph g(x: bf16[B, 256], w: bf16[256, 256], z: bf16[B, 256], v: bf16[256, "
     "256]) -> (p: bf16[B, 256], q: bf16[B, 256]) {\n  p = x @ w\n  q = z @ v\n}",
     2, 1, TARGET_SM_80},
    {REASON_OTHER_BLOCKS,
     "dim B in 1..65536\ngraph g(x: f32[B, 512], z: f32[B, 8192]) -> (p: f32[B, 512], q: f32[B, "
     "8192]) {\n  p = softmax(x)\n  q = softmax(z)\n}",
     "dim B in 1..65536\ngraph g(x: f32[B, 512], z: f32[B, 500]) -> (p: f32[B, 512], q: f32[B, "
     "500]) {\n  p = softmax(x)\n  q = softmax(z)\n}",
     2, 1, TARGET_SM_90A},
    {REASON_OTHER_TILES,
     "dim B in 1..4096\ngraph g(x: bf16[B, 512], w: bf16[512, 512], v: bf16[256, 512]) -> (p: "
     "bf16[B, 512], q: bf16[B, 256]) {\n  p = x @ w\n  q = x @ transpose(v)\n}",
     "dim B in 1..4096\ngraph g(x: bf16[B, 512], w: bf16[512, 512], v: bf16[512, 256]) -> (p: "
     "bf16[B, 512], q: bf16[B, 256]) {\n  p = x @ w\n  q = x @ v\n}",
     2, 1, TARGET_SM_90A},
    {REASON_IN_BLOCKS,
     "dim B in 1..4096\ngraph g(x: bf16[B, 512], w: bf16[512, 512], v: bf16[512, 512], u: "
     "bf16[512, "
     "256]) -> (y: bf16[B, 512], q: bf16[B, 256]) {\n"
     "  p = x @ w\n  y = silu(p) * (x @ v)\n  q = x @ u\n}",
     "dim B in 1..4096\ngraph g(x: bf16[B, 512], w: bf16[512, 512], v: bf16[512, 512], u: "
     "bf16[512, "
     "256]) -> (y: bf16[B, 512], q: bf16[B, 256]) {\n"
     "  y = silu(x @ w)\n  q = x @ u\n}",
     2, 1, TARGET_SM_90A},
    {REASON_LAUNCH_FULL,
     "graph g(" TEN_INPUTS("a") TEN_INPUTS("b") TEN_INPUTS("c") TEN_INPUTS("d") TEN_INPUTS("e")
         TEN_INPUTS("f") "k: f32[" MANY "]) -> (p: f32[" MANY "], q: f32[" MANY "]) {\n"
                         "  p = " TEN_TERMS("a") TEN_TERMS("b")
                             TEN_TERMS("c") "k\n  q = exp(" TEN_TERMS("d") TEN_TERMS("e")
                                 TEN_TERMS("f") "k)\n}",
     "graph g(" TEN_INPUTS("a")
         TEN_INPUTS("b") "k: f32[" MANY "]) -> (p: f32[" MANY "], q: f32[" MANY
                         "]) {\n  p = " TEN_TERMS("a") "k\n  q = exp(" TEN_TERMS("b") "k)\n}",
     2, 1, TARGET_SM_80},
    {REASON_SLOWER_LAUNCH,
     "dim B in 1..1024\ngraph g(x: f32[B, 2048], w: f32[2048, 2048], z: f32[B, 2048], v: "
     "f32[2048, 2048]) -> (p: f32[B, 2048], q: f32[B, 2048]) {\n  p = sqrt(x @ w)\n  q = z @ v\n}",
     "dim B in 1..1024\ngraph g(x: f32[B, 2048], w: f32[2048, 2048], z: f32[B, 2048], v: "
     "f32[2048, 2048]) -> (p: f32[B, 2048], q: f32[B, 2048]) {\n"
     "  fuse must {\n    p = sqrt(x @ w)\n    q = z @ v\n  }\n}",
     2, 1, TARGET_SM_80},
};

static bool has_never(const Plan *plan, ReasonId reason) {
    bool has = false;
    for (uint32_t i = 0; i < plan->unjoined.n; i++)
        has = has || plan->unjoined.data[i].reason == reason;
    return has;
}

static PricedPlan plan_of(Arena *arena, const char *source, TargetId target) {
    const Module *module = plans_parse(arena, source);
    const Card *card = card_of_target(target_get(target));
    PricedPlan priced = plans_price(arena, module, 0, false, target, card, NULL);
    cr_assert(priced.plan, "%s", source);
    return priced;
}

Test(reasons, following_the_advice_joins_launches) {
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
        const Joined *join = &joins[i];
        const char *id = reason_info(join->reason)->id;
        Arena *arena = arena_new(NULL);
        PricedPlan before = plan_of(arena, join->before, join->target);
        PricedPlan after = plan_of(arena, join->after, join->target);
        cr_expect(has_never(before.plan, join->reason), "%s is not said of\n%s", id, join->before);
        cr_expect(!has_never(after.plan, join->reason), "%s is still said of\n%s", id, join->after);
        cr_expect_eq(before.cost->n_launches, join->n_before, "%s: %u launches\n%s", id,
                     before.cost->n_launches, join->before);
        cr_expect_eq(after.cost->n_launches, join->n_after, "%s: %u launches\n%s", id,
                     after.cost->n_launches, join->after);
        arena_free(arena);
    }
}

Test(reasons, every_reason_is_here) {
    bool seen[REASON_COUNT] = {true};
    for (size_t i = 0; i < sizeof flips / sizeof flips[0]; i++) seen[flips[i].reason] = true;
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) seen[joins[i].reason] = true;
    for (int id = 1; id < REASON_COUNT; id++)
        cr_expect(seen[id], "no program with [%s]", reason_info((ReasonId)id)->id);
}
