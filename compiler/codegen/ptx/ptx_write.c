/* Functions, blocks and branches as PTX. See ptx_write.h.
 *
 * Blocks are written in reverse postorder, so a definition comes before its uses. A phi is a set of
 * registers, and each edge to its block copies values into them. */
#include "codegen/ptx/ptx_write.h"

#include "codegen/llvm/module.h"
#include "codegen/ptx/ptx.h"

#include <frt_manifest.h>
#include <string.h>

/* Edges. */

static const PtxBlock *block_of(const Ptx *ptx, LLVMBasicBlockRef block) {
    return ptx_map_find(&ptx->blocks, block);
}

typedef struct Moves {
    PtxPart *to, *from;
    uint32_t n;
} Moves;

static LLVMValueRef incoming(LLVMValueRef phi, LLVMBasicBlockRef from) {
    for (uint32_t i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingBlock(phi, i) == from) return LLVMGetIncomingValue(phi, i);
    return NULL;
}

static bool is_same(PtxPart a, PtxPart b) {
    return a.kind == PTX_REGISTER && b.kind == PTX_REGISTER && a.class == b.class &&
           a.index == b.index && a.number == b.number;
}

/* The copies into the phis of `to` along the edge from `from`. An undefined value needs no copy. */
static Moves moves_of(Ptx *ptx, LLVMBasicBlockRef from, LLVMBasicBlockRef to) {
    Moves moves = {.n = 0};
    uint32_t capacity = 0;
    LLVMValueRef first = LLVMGetFirstInstruction(to), phi;
    for (phi = first; phi && LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi))
        capacity += ptx_type_of(ptx, phi).n_parts;
    moves.to = arena_array(ptx->arena, PtxPart, capacity);
    moves.from = arena_array(ptx->arena, PtxPart, capacity);
    for (phi = first; phi && LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi)) {
        if (!LLVMGetFirstUse(phi)) continue;
        const PtxPart *values = ptx_parts(ptx, incoming(phi, from)), *own = ptx_parts(ptx, phi);
        for (uint32_t i = 0; i < ptx_type_of(ptx, phi).n_parts; i++) {
            if (values[i].kind == PTX_NOTHING || is_same(values[i], own[i])) continue;
            moves.to[moves.n] = own[i];
            moves.from[moves.n++] = values[i];
        }
    }
    return moves;
}

/* Writes parallel copies one after the other. A source that an earlier copy overwrites is saved in
 * a new register first. */
static void put_moves(Ptx *ptx, Moves moves) {
    for (uint32_t i = 0; i < moves.n; i++) {
        PtxPart plain = ptx_plain(ptx, moves.from[i]);
        bool is_late = false;
        for (uint32_t k = 0; k < i && !is_late; k++) is_late = is_same(moves.to[k], plain);
        if (is_late) {
            PtxPart aside = ptx_new(ptx, plain.class);
            ptx_move(ptx, aside, plain);
            plain = aside;
        }
        moves.from[i] = plain;
    }
    for (uint32_t i = 0; i < moves.n; i++) ptx_move(ptx, moves.to[i], moves.from[i]);
}

/* Branches. */

static void put_label(Ptx *ptx, uint32_t label) {
    text_printf(&ptx->body, "$L%u:\n", label);
}

static void put_goto(Ptx *ptx, uint32_t label) {
    text_printf(&ptx->body, "\tbra.uni $L%u;\n", label);
}

static void put_goto_if(Ptx *ptx, PtxPart condition, bool is_wanted, uint32_t label) {
    condition = ptx_register(ptx, condition);
    text_printf(&ptx->body, "\t@%s%%p%u bra $L%u;\n", is_wanted ? "" : "!", condition.index, label);
}

/* Writes an edge at the end of a block. `next` is the label of the block that follows in the text:
 * a branch to it is left out. */
static void follow(Ptx *ptx, LLVMBasicBlockRef from, LLVMBasicBlockRef to, uint32_t next) {
    uint32_t label = block_of(ptx, to)->label;
    put_moves(ptx, moves_of(ptx, from, to));
    if (label != next) put_goto(ptx, label);
}

static uint32_t label_of_use(const Ptx *ptx, LLVMValueRef phi, LLVMUseRef use) {
    LLVMValueRef user = LLVMGetUser(use);
    if (!LLVMIsAPHINode(user)) return block_of(ptx, LLVMGetInstructionParent(user))->label;
    uint32_t last = 0; /* a phi reads its operand at the end of the incoming block */
    for (uint32_t i = 0; i < LLVMCountIncoming(user); i++) {
        uint32_t label = block_of(ptx, LLVMGetIncomingBlock(user, i))->label;
        if (LLVMGetIncomingValue(user, i) == phi && label > last) last = label;
    }
    return last;
}

static bool is_one_register(PtxPart a, PtxPart b) {
    bool is_there = a.kind == PTX_REGISTER || a.kind == PTX_HALF;
    return is_there && b.kind == PTX_REGISTER && a.class == b.class && a.index == b.index;
}

/* Whether a part of the value lies in a register that the copies overwrite. */
static bool is_overwritten(Ptx *ptx, LLVMValueRef value, Moves moves) {
    const PtxPart *parts = ptx_map_find(&ptx->parts, value);
    if (!parts || LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMStructTypeKind) return false;
    for (uint32_t i = 0; i < ptx_type_of(ptx, value).n_parts; i++)
        for (uint32_t k = 0; k < moves.n; k++)
            if (is_one_register(parts[i], moves.to[k])) return true;
    return false;
}

/* Whether a block after label `here` reads the value, or reads another value in the same
 * registers. */
static bool is_wanted_after(Ptx *ptx, LLVMValueRef value, Moves moves, uint32_t here) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (label_of_use(ptx, value, use) > here) return true;
        if (LLVMIsAPHINode(user) || !is_overwritten(ptx, user, moves)) continue;
        if (is_wanted_after(ptx, user, moves, here)) return true;
    }
    return false;
}

/* Whether the copies into a loop's phis may precede the loop's last branch. The condition and the
 * code after the loop must not read an old value of the phis, except through phis of their own. */
static bool may_move_first(Ptx *ptx, LLVMBasicBlockRef from, LLVMBasicBlockRef loop,
                           LLVMBasicBlockRef after, PtxPart condition) {
    uint32_t here = block_of(ptx, from)->label;
    if (block_of(ptx, loop)->label > here || block_of(ptx, after)->label <= here) return false;
    Moves first = moves_of(ptx, from, loop);
    for (uint32_t i = 0; i < first.n; i++)
        if (is_same(first.to[i], condition)) return false;
    LLVMValueRef phi = LLVMGetFirstInstruction(loop);
    for (; LLVMIsAPHINode(phi); phi = LLVMGetNextInstruction(phi))
        if (is_wanted_after(ptx, phi, first, here)) return false;
    return true;
}

/* Rewrites the sources of copies that run after `first`. A source that `first` has copied is read
 * from its new register. False: `first` has overwritten a source without copying it. */
static bool follow_moves(Moves first, Moves *then) {
    for (uint32_t k = 0; k < then->n; k++) {
        PtxPart *from = &then->from[k];
        bool is_lost = false, is_moved = false;
        for (uint32_t i = 0; i < first.n && !is_moved; i++) {
            is_lost = is_lost || is_one_register(*from, first.to[i]);
            is_moved = is_same(first.from[i], *from);
            if (is_moved) *from = first.to[i];
        }
        if (is_lost && !is_moved) return false;
    }
    return true;
}

/* Writes the end of a loop with a single backward branch, the form for which ptxas emits the best
 * code. */
static bool put_loop_end(Ptx *ptx, LLVMBasicBlockRef from, LLVMValueRef branch, PtxPart condition,
                         uint32_t next) {
    for (unsigned i = 0; i < 2; i++) {
        LLVMBasicBlockRef loop = LLVMGetSuccessor(branch, i);
        LLVMBasicBlockRef after = LLVMGetSuccessor(branch, 1 - i);
        if (!may_move_first(ptx, from, loop, after, condition)) continue;
        Moves first = moves_of(ptx, from, loop), then = moves_of(ptx, from, after);
        if (!follow_moves(first, &then)) continue;
        put_moves(ptx, first);
        put_goto_if(ptx, condition, i == 0, block_of(ptx, loop)->label);
        put_moves(ptx, then);
        uint32_t label = block_of(ptx, after)->label;
        if (label != next) put_goto(ptx, label);
        return true;
    }
    return false;
}

static void put_choice(Ptx *ptx, LLVMBasicBlockRef from, LLVMValueRef branch, uint32_t next) {
    LLVMBasicBlockRef yes = LLVMGetSuccessor(branch, 0), no = LLVMGetSuccessor(branch, 1);
    PtxPart condition = *ptx_parts(ptx, LLVMGetCondition(branch));
    if (condition.kind != PTX_REGISTER) {
        follow(ptx, from, condition.number ? yes : no, next);
        return;
    }
    if (put_loop_end(ptx, from, branch, condition, next)) return;
    bool yes_moves = moves_of(ptx, from, yes).n > 0, no_moves = moves_of(ptx, from, no).n > 0;
    bool goes_if = !yes_moves && (no_moves || block_of(ptx, yes)->label != next);
    LLVMBasicBlockRef far = goes_if ? yes : no, near = goes_if ? no : yes;
    bool is_direct = goes_if || !no_moves;
    uint32_t label = is_direct ? block_of(ptx, far)->label : ++ptx->n_labels;
    put_goto_if(ptx, condition, goes_if, label);
    follow(ptx, from, near, is_direct ? next : 0);
    if (is_direct) return;
    put_label(ptx, label);
    follow(ptx, from, far, next);
}

static void put_switch(Ptx *ptx, LLVMBasicBlockRef from, LLVMValueRef choice, uint32_t next) {
    LLVMValueRef value = LLVMGetOperand(choice, 0);
    PtxType type = ptx_type_of(ptx, value);
    for (unsigned i = 1; i < LLVMGetNumSuccessors(choice); i++) {
        PtxPart both[2];
        both[0] = *ptx_parts(ptx, value);
        both[1] = *ptx_parts(ptx, LLVMGetSwitchCaseValue(choice, i));
        PtxPart is_case = ptx_do(ptx, &type, "setp.eq.#b $0, $1, $2;", PTX_PRED, both, 2);
        LLVMBasicBlockRef to = LLVMGetSuccessor(choice, i);
        if (moves_of(ptx, from, to).n) ptx_ice(ptx, "phis after ", choice);
        put_goto_if(ptx, is_case, true, block_of(ptx, to)->label);
    }
    follow(ptx, from, LLVMGetSwitchDefaultDest(choice), next);
}

static bool put_terminator(Ptx *ptx, LLVMBasicBlockRef from, LLVMValueRef last, uint32_t next) {
    LLVMOpcode op = LLVMGetInstructionOpcode(last);
    if (op == LLVMRet)
        text_puts(&ptx->body, "\tret;\n");
    else if (op == LLVMSwitch)
        put_switch(ptx, from, last, next);
    else if (op == LLVMBr && LLVMIsConditional(last))
        put_choice(ptx, from, last, next);
    else if (op == LLVMBr)
        follow(ptx, from, LLVMGetSuccessor(last, 0), next);
    else
        return false;
    return true;
}

/* Blocks. */

/* Whether the instruction only extends an index of addresses. A GEP extends its index itself. */
static bool is_index(LLVMValueRef instruction) {
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    if (op != LLVMSExt && op != LLVMZExt) return false;
    LLVMTypeRef narrow = LLVMTypeOf(LLVMGetOperand(instruction, 0));
    if (LLVMGetTypeKind(narrow) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(narrow) != 32)
        return false;
    for (LLVMUseRef use = LLVMGetFirstUse(instruction); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAGetElementPtrInst(user)) return false;
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(user)) > 1) return false;
    }
    return true;
}

/* Whether the instruction has no effect and no use. */
static bool is_dead(LLVMValueRef instruction) {
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    return !LLVMGetFirstUse(instruction) && op != LLVMCall && op != LLVMStore &&
           !LLVMIsATerminatorInst(instruction);
}

static void put_block(Ptx *ptx, const PtxBlock *own, uint32_t next) {
    LLVMBasicBlockRef block = own->block;
    ptx->here = own;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
        if (LLVMIsAPHINode(i) || is_dead(i) || ptx_is_same(ptx, i, is_index(i)) || is_index(i))
            continue;
        bool is_known = ptx_put_arithmetic(ptx, i) || ptx_put_cast(ptx, i) ||
                        ptx_put_lanes(ptx, i) || ptx_put_memory(ptx, i) || ptx_put_call(ptx, i) ||
                        put_terminator(ptx, block, i, next);
        if (!is_known) ptx_ice(ptx, "", i);
    }
}

/* Visits the blocks reachable from `block` in depth-first order, and fills `order` from its end:
 * reverse postorder. */
static void visit(Ptx *ptx, LLVMBasicBlockRef block, PtxBlock **order, uint32_t *begin) {
    PtxBlock *own = arena_array(ptx->arena, PtxBlock, 1);
    own->block = block;
    ptx_map_add(ptx->arena, &ptx->blocks, block, own);
    LLVMValueRef last = LLVMGetBasicBlockTerminator(block);
    for (unsigned i = 0; i < LLVMGetNumSuccessors(last); i++)
        if (!block_of(ptx, LLVMGetSuccessor(last, i)))
            visit(ptx, LLVMGetSuccessor(last, i), order, begin);
    order[--*begin] = own;
}

static const PtxBlock *common_dominator(const PtxBlock *a, const PtxBlock *b) {
    while (a != b) {
        if (a->label > b->label)
            a = a->dominator;
        else
            b = b->dominator;
    }
    return a;
}

/* The dominators by Cooper, Harvey and Kennedy. In reverse postorder a block's dominator comes
 * before it. One round suffices, because each loop has a single entry. */
static void find_dominator(const Ptx *ptx, PtxBlock *own) {
    LLVMValueRef block = LLVMBasicBlockAsValue(own->block);
    for (LLVMUseRef use = LLVMGetFirstUse(block); use; use = LLVMGetNextUse(use)) {
        const PtxBlock *from = block_of(ptx, LLVMGetInstructionParent(LLVMGetUser(use)));
        if (!from || from->label >= own->label) continue;
        own->dominator = own->dominator ? common_dominator(own->dominator, from) : from;
    }
}

static void put_blocks(Ptx *ptx) {
    uint32_t n = LLVMCountBasicBlocks(ptx->function), begin = n;
    PtxBlock **order = arena_array(ptx->arena, PtxBlock *, n);
    visit(ptx, LLVMGetEntryBasicBlock(ptx->function), order, &begin);
    for (uint32_t i = begin; i < n; i++) order[i]->label = ++ptx->n_labels;
    for (uint32_t i = begin; i < n; i++) find_dominator(ptx, order[i]);
    for (uint32_t i = begin; i < n; i++) {
        if (i > begin) put_label(ptx, order[i]->label);
        put_block(ptx, order[i], i + 1 < n ? order[i + 1]->label : 0);
    }
}

/* Functions. */

/* Writes the value of a function attribute such as "128,1,1" as a directive. */
static bool put_directive(const Ptx *ptx, Text *head, const char *key, const char *directive) {
    LLVMAttributeRef attribute = LLVMGetStringAttributeAtIndex(
        ptx->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, key, (unsigned)strlen(key));
    unsigned n;
    if (attribute)
        text_printf(head, "%s %s\n", directive, LLVMGetStringAttributeValue(attribute, &n));
    return attribute != NULL;
}

static void put_directives(const Ptx *ptx, Text *head) {
    put_directive(ptx, head, "nvvm.reqntid", ".reqntid");
    if (put_directive(ptx, head, "nvvm.cluster_dim", ".reqnctapercluster"))
        text_puts(head, ".explicitcluster\n");
    put_directive(ptx, head, "nvvm.minctasm", ".minnctapersm");
}

static void put_registers(const Ptx *ptx, Text *head) {
    for (PtxClass class = 0; class < PTX_N_CLASSES; class ++)
        if (ptx->n_registers[class])
            text_printf(head, "\t.reg %s %s<%u>;\n", ptx_class(class)->type,
                        ptx_class(class)->prefix, ptx->n_registers[class] + 1);
}

void ptx_add_declarations(Text *head, const Text *declarations) {
    for (const char *line = text_str(declarations); *line; line += strcspn(line, "\n") + 1) {
        const char *own = str_format(head->arena, "%.*s\n", (int)strcspn(line, "\n"), line);
        if (!strstr(text_str(head), own)) text_puts(head, own);
    }
}

/* Declares the shared-memory arrays that the function uses: its own in `own`, and those of the
 * whole launch in `common`. */
static void put_shared(const Ptx *ptx, Text *own, Text *common) {
    LLVMValueRef array = LLVMGetFirstGlobal(ptx->module);
    for (; array; array = LLVMGetNextGlobal(array)) {
        if (!ptx_map_find(&ptx->shared, array)) continue;
        LLVMTypeRef type = LLVMGlobalGetValueType(array);
        PtxType element = ptx_type(ptx, LLVMGetElementType(type));
        uint64_t n = LLVMGetArrayLength2(type) * ptx_element(element.element)->bits / 8;
        size_t n_bytes;
        const char *name = LLVMGetValueName2(array, &n_bytes);
        unsigned align = LLVMGetAlignment(array);
        if (!LLVMIsDeclaration(array)) {
            text_printf(own, "\t.shared .align %u .b8 %s[%llu];\n", align, name,
                        (unsigned long long)n);
            continue;
        }
        Text line = {.arena = ptx->arena};
        text_printf(&line, ".extern .shared .align %u .b8 %s[];\n", align, name);
        ptx_add_declarations(common, &line);
    }
}

static void put_function(PtxText *text, const Codegen *k, LLVMValueRef function, uint32_t n) {
    size_t n_bytes;
    Ptx ptx = {.arena = k->arena,
               .body.arena = k->arena,
               .module = k->module,
               .function = function,
               .name = LLVMGetValueName2(function, &n_bytes),
               .invariant_kind = k->invariant_kind};
    ptx.parts = ptx_map_for(ptx.arena, n);
    ptx.same = ptx_map_for(ptx.arena, n);
    Text *to = &text->functions;
    text_printf(to, "\n" FRT_MANIFEST_PREFIX FRT_D_FUNCTION " %s\n.visible .entry %s(\n", ptx.name,
                ptx.name);
    ptx_put_params(&ptx, to);
    put_blocks(&ptx);
    text_puts(to, ")\n");
    put_directives(&ptx, to);
    text_puts(to, "{\n");
    put_registers(&ptx, to);
    put_shared(&ptx, to, &text->head);
    text_add(to, text_str(&ptx.body), ptx.body.n_bytes);
    text_puts(to, "}\n");
}

void ptx_write_head(Text *head, const Target *target, bool has_f8_mma) {
    text_printf(head, "\n.version %s\n.target %s\n.address_size 64\n",
                has_f8_mma ? target->f8_ptx_version : target->ptx_version, target->name);
}

void ptx_write_module(PtxText *text, const Codegen *k, uint32_t n_instructions) {
    LLVMValueRef function = LLVMGetFirstFunction(k->module);
    for (; function; function = LLVMGetNextFunction(function))
        if (!LLVMIsDeclaration(function)) put_function(text, k, function, n_instructions);
}
