/* Emits a program of functions.def as LLVM IR, step by step. See program.h and math.h. */
#include "codegen/math/math_ops.h"
#include "codegen/math/program.h"

#include <string.h>

typedef struct Emission {
    const Codegen *k;
    const MathProgram *program;
    const Val *parameters;
    Fp widths[2]; /* indexed by is_f64 */
    uint32_t n_parameters;
    LLVMBasicBlockRef common, after; /* of a rare(): the block before the branch, and the block
                                      * where both ways meet */
} Emission;

/* How one operation is emitted. Exactly one member is set. */
typedef struct Emitter {
    Val (*unary)(const Codegen *k, Val a);
    Val (*binary)(const Codegen *k, Val a, Val b);
    Val (*cast)(const Codegen *k, Val a, LLVMTypeRef type);
    const char *intrinsic;
    LLVMRealPredicate predicate;
    Val (*own)(Emission *e, const MathStep *step, Val *args);
} Emitter;

static const Fp *width_of(const Emission *e, const MathStep *step) {
    return &e->widths[step->type.is_f64];
}

static Val own_parameter(Emission *e, const MathStep *step, Val *args) {
    (void)step, (void)args;
    return e->parameters[e->n_parameters++];
}

static Val own_constant(Emission *e, const MathStep *step, Val *args) {
    (void)args;
    const Fp *p = width_of(e, step);
    return step->type.kind == MATH_BITS ? fp_int(p, step->word) : fp_num(p, step->number);
}

static Val own_opaque(Emission *e, const MathStep *step, Val *args) {
    (void)args;
    return fp_opaque(width_of(e, step), e->program->steps.data[step->args[0]].number);
}

static Val own_hidden(Emission *e, const MathStep *step, Val *args) {
    if (!LLVMIsConstant(args[0])) return args[0];
    Val one = fp_opaque(width_of(e, step), 1);
    return k_fmul(e->k, args[0], one);
}

/* Emits a PTX instruction that has no LLVM intrinsic as inline assembly, once for each lane. */
static Val own_machine(Emission *e, const MathStep *step, Val *args) {
    static const char *const operands[] = {"", " $0, $1;", " $0, $1, $2;", " $0, $1, $2, $3;"};
    static const char *const registers[2][STEP_MAX_ARGS + 1] = {
        {NULL, "=f,f", "=f,f,f", "=f,f,f,f"}, {NULL, "=d,d", "=d,d,d", "=d,d,d,d"}};
    const Fp *p = width_of(e, step);
    const Codegen *k = e->k;
    const char *text = str_format(k->arena, "%s%s", step->text, operands[step->n_args]);
    Val all = LLVMGetPoison(p->type), own[STEP_MAX_ARGS];
    for (unsigned i = 0; i < (p->lanes ? p->lanes : 1); i++) {
        for (unsigned j = 0; j < step->n_args; j++)
            own[j] = p->lanes ? k_extract(k, args[j], i) : args[j];
        Val one = k_asm(k, LLVMTypeOf(own[0]), text, registers[p->is_f64][step->n_args], own,
                        step->n_args, false);
        all = p->lanes ? k_insert(k, all, one, i) : one;
    }
    return all;
}

static Val own_select(Emission *e, const MathStep *step, Val *args) {
    (void)step;
    return k_select(e->k, args[0], args[1], args[2]);
}

static Val own_rare(Emission *e, const MathStep *step, Val *args) {
    const Codegen *k = e->k;
    Val any = fp_any_lane(width_of(e, step), args[0]);
    e->common = k_here(k);
    LLVMBasicBlockRef rare = k_block(k, "rare");
    e->after = k_block(k, "after_rare");
    k_cond_br(k, any, rare, e->after);
    k_goto(k, rare);
    return args[0];
}

/* Lanes whose condition is false keep `other`, so a lane's result does not depend on its
 * neighbours. */
static Val own_rare_end(Emission *e, const MathStep *step, Val *args) {
    (void)step;
    Val mixed = k_select(e->k, args[0], args[1], args[2]);
    LLVMBasicBlockRef from = k_here(e->k);
    k_branch(e->k, e->after);
    return k_merge(e->k, args[2], e->common, mixed, from);
}

static const Emitter emitters[STEP_COUNT] = {
#define UNARY(function) .unary = function
#define BINARY(function) .binary = function
#define CAST(function) .cast = function
#define INTRINSIC(name) .intrinsic = name
#define COMPARE(name) .predicate = LLVMReal##name
#define OWN(name) .own = own_##name
#define OP(symbol, name, operands, arity, result, emitted) [STEP_##symbol] = {emitted},
    STEP_OPS(OP)
#undef OP
};

static Val emit_step(Emission *e, const MathStep *step, Val *args) {
    const Emitter *emitter = &emitters[step->op];
    const Codegen *k = e->k;
    const Fp *p = width_of(e, step);
    if (emitter->unary) return emitter->unary(k, args[0]);
    if (emitter->binary) return emitter->binary(k, args[0], args[1]);
    if (emitter->predicate) return k_fcmp(k, emitter->predicate, args[0], args[1]);
    if (emitter->cast)
        return emitter->cast(k, args[0], step->type.kind == MATH_BITS ? p->bits : p->type);
    if (emitter->own) return emitter->own(e, step, args);
    return fp_intrinsic(k, emitter->intrinsic, LLVMTypeOf(args[0]), args, step->n_args);
}

/* The text of each function is read once per module. */
static const MathProgram *program_of(const Codegen *k, const char *name, bool is_f64) {
    for (MathProgram *p = *k->programs; p; p = p->next)
        if (p->is_f64 == is_f64 && strcmp(p->name, name) == 0) return p;
    MathProgram *fresh = math_program_read(k->arena, name, is_f64, k_has_ptx(k));
    fresh->next = *k->programs;
    return *k->programs = fresh;
}

void math_call(const Codegen *k, const char *name, const Val *args, Val *results) {
    Fp p = fp_of(k, args[0]);
    const MathProgram *program = program_of(k, name, p.is_f64);
    Emission e = {.k = k, .program = program, .parameters = args};
    e.widths[p.is_f64] = p;
    e.widths[!p.is_f64] = p.is_f64 ? fp_f32(&p) : fp_f64(&p);
    Val *values = arena_array(k->arena, Val, program->steps.n);
    for (uint32_t i = 0; i < program->steps.n; i++) {
        const MathStep *step = &program->steps.data[i];
        Val own[STEP_MAX_ARGS];
        for (uint32_t j = 0; j < step->n_args; j++) own[j] = values[step->args[j]];
        if (!step->is_free) values[i] = emit_step(&e, step, own);
    }
    for (uint32_t i = 0; i < program->n_results; i++) results[i] = values[program->results[i]];
}

Val math_unary(const Codegen *k, const char *name, Val x) {
    Val result;
    math_call(k, name, &x, &result);
    return result;
}

Val math_binary(const Codegen *k, const char *name, Val x, Val y) {
    Val args[] = {x, y}, result;
    math_call(k, name, args, &result);
    return result;
}
