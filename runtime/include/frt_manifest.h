/* The words, the escape rule and the bounds of the artifact's manifest. The compiler writes
 * manifests and the runtime reads them; both include this header. docs/MANIFEST.md has the grammar.
 * The header has constants only, so including it needs no library. */
#ifndef FRT_MANIFEST_H
#define FRT_MANIFEST_H

#define FRT_MANIFEST_VERSION 1
#define FRT_MANIFEST_PREFIX "//@ "    /* opens every line */
#define FRT_MANIFEST_SECTION ".fusec" /* ELF section that holds the text */
#define FRT_CHECKSUM_DIGITS 8         /* lower-case hex; counted as '0' in the checksum itself */
#define FRT_NONE "-"                  /* no dims; always true; persistent temp */
#define FRT_EXTENSION_PREFIX "x-"     /* directives that a reader may ignore */

/* Directives, in the order in which they may first appear. */
#define FRT_D_ARTIFACT "fusec-artifact"
#define FRT_D_CHECKSUM "checksum"
#define FRT_D_COMPILER "compiler"
#define FRT_D_TARGET "target"
#define FRT_D_LEVEL "level"
#define FRT_D_NUMERICS "numerics"
#define FRT_D_SOURCE "source"
#define FRT_D_DIM "dim"
#define FRT_D_WEIGHTS "weights"
#define FRT_D_GRAPH "graph"
#define FRT_D_INPUT "input"
#define FRT_D_PARAM "param"
#define FRT_D_OUTPUT "output"
#define FRT_D_TEMP "temp"
#define FRT_D_PITCH "pitch"
#define FRT_D_WORKSPACE "workspace"
#define FRT_D_LAUNCH "launch"
#define FRT_D_MEASURES "measures"
#define FRT_D_VARIANT "variant"
#define FRT_D_MAP "map"
#define FRT_MAP_TF32 "tf32" /* option of a map: the copy engine rounds f32 elements to tf32 */
#define FRT_D_COPY "copy"
#define FRT_D_REPEAT "repeat"
#define FRT_D_ODD "odd"
#define FRT_D_END_REPEAT "end-repeat"
#define FRT_D_IN_PLACE "in-place"
#define FRT_D_END "end"
#define FRT_WAITS "waits" /* of a variant: it may be launched early (PDL) */
/* Option of a variant: a persistent grid, at most one block per multiprocessor. */
#define FRT_RESIDENT "resident"
#define FRT_PRICE "price"                              /* of a variant: its predicted time */
#define FRT_X_BYTES FRT_EXTENSION_PREFIX "bytes"       /* of a persistent temp */
#define FRT_X_REWRITES FRT_EXTENSION_PREFIX "rewrites" /* whether they were allowed */
#define FRT_REWRITES_ON "on"
#define FRT_REWRITES_OFF "off"
#define FRT_D_PAYLOAD "payload"   /* after `end`: the bytes of a cubin */
#define FRT_D_FUNCTION "function" /* in PTX: the text of a kernel follows */

#define FRT_TARGET_CUDA "cuda"
#define FRT_TARGET_CPU "cpu"
#define FRT_NUMERICS_STRICT "strict"
#define FRT_NUMERICS_FAST "fast"
#define FRT_PHASE_INIT_NAME "init"
#define FRT_PHASE_RUN_NAME "run"

/* The bounds that a reader enforces. A manifest inside them is readable by every version. */
enum {
    FRT_MAX_LINES = 65536,
    FRT_MAX_LINE_BYTES = 65536, /* with the prefix, without the newline */
    FRT_MAX_NAME_BYTES = 1024,  /* in escaped form */
    FRT_MAX_GRAPHS = 64,
    FRT_MAX_TEXT_BYTES = 1 << 24,
    FRT_MAX_LEVELS = 16,
    FRT_MAX_DIMS = 64,
    FRT_MAX_TENSORS = 16384,  /* per graph */
    FRT_MAX_ARGS = 256,       /* tensors per launch */
    FRT_MAX_NUMBERS = 256,    /* constants per launch */
    FRT_MAX_REFS = 1 << 18,   /* tensors, dims and constants of all launches together */
    FRT_MAX_REPEATS_DEEP = 4, /* inside each other */
    FRT_MAX_VARIANTS = 64,    /* per launch */
    FRT_MAX_MEASURES = 4,     /* per launch */
    FRT_MAX_EXPR_TOKENS = 4096,
    FRT_MAX_EXPR_DEPTH = 32,
    FRT_MAX_TERMS = 64, /* per predicate */
    FRT_MAX_UNLESS = 4, /* predicates per pitch */
    FRT_MAX_MAPS = 16,  /* per variant */
    FRT_MAX_MAP_RANK = 5,
    FRT_MAX_MAP_BOX = 256,      /* elements along an axis */
    FRT_MAX_MAP_CORNER = 32768, /* pixels, along one spatial axis of im2col */
    FRT_MAX_MAP_STEP = 8,       /* the CUDA driver's limit */
    FRT_MAP_ALIGN_BYTES = 16,   /* alignment of addresses, strides and a box's innermost side */
    FRT_MAP_BYTES = 128,        /* bytes of the kernel parameter */
    FRT_MAX_CLUSTER = 16,
    FRT_MAX_RESIDENT = 32,     /* blocks per multiprocessor */
    FRT_MAX_BLOCK = 1024,      /* threads (CUDA); on the CPU a block has at most 2^31-1 units */
    FRT_MAX_FUNCTIONS = 65536, /* in PTX */
    /* Stack of a CPU kernel, with the functions that it calls. */
    FRT_MAX_KERNEL_STACK_BYTES = 1 << 20
};

/* The escape rule of names. A byte for which this is false is written %XX, with two hex digits. */
#define FRT_NAME_BYTE_IS_PLAIN(c)                                                              \
    (((c) >= 'A' && (c) <= 'Z') || ((c) >= 'a' && (c) <= 'z') || ((c) >= '0' && (c) <= '9') || \
     (c) == '_' || (c) == '.')

#endif
