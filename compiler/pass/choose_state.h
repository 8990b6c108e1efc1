/* What choosing works on, shared by its two halves: choose.c prices moves, choose_part.c finds the
 * kernels that have moves and takes them out of the graph. Internal to them. */
#ifndef FUSEC_CHOOSE_STATE_H
#define FUSEC_CHOOSE_STATE_H

#include "pass/choose.h"
#include "pass/cut.h"
#include "pass/excerpt.h"

/* What is asked of fusion beyond its own rules, per node. */
enum { N_WISHES = 8 };
typedef union Wishes {
    struct {
        bool *apart, *unmerged, *store, *alone, *placed, *again, *windowed, *late;
    };
    bool *all[N_WISHES];
} Wishes;

typedef struct Part Part;
/* A part that has been priced: its wishes after that. */
typedef struct Judged {
    const Part *part;
    Wishes after;
    bool improves;
} Judged;

typedef struct Chooser {
    Arena *arena, *scratch;
    const Graph *graph;
    const Target *target;
    CostPoints points;
    Diags *diags;
    Wishes wishes;
    const uint32_t *op_cost; /* per op */
    const VecU32 *users;     /* per node */
    Cut cut;                 /* its `again` is the wishes' */
    bool *is_settled;        /* per node: the kernel that it is the main one of had its moves */
    bool *is_asked;          /* per node: computing it in what multiplies it has been priced */
    bool *is_sliced;         /* per node: making slices of it in its place has been priced */
    bool *is_lasting;        /* per node: what its product's kernel goes on to has been priced */
    Vec(Judged) judged;
    uint32_t n_excerpts;
} Chooser;

/* What is taken out of the graph with a kernel, and so which moves there are. */
typedef enum PartKind {
    PART_FACTORS, /* what makes factors for it, and others that these make it for */
    PART_WINDOWS, /* of a product: the kernels that read slices of it */
    PART_LATE     /* of a product: the kernels that read what it goes on to */
} PartKind;

struct Part {
    PartKind kind;
    Excerpt excerpt;
    Wishes wishes;     /* as they are */
    bool *is_spread;   /* per node of it: a contraction's factor that is not simply loaded */
    bool *is_ahead[2]; /* by side, per node of it: of a kernel that makes such a factor */
    bool *may_place;   /* per node of it: a concat that may be stored in pieces */
    bool *may_window;  /* per node of it: the product that may be made slice by slice */
    bool *is_late;     /* per node of it: what the product's kernel makes last */
};

/* Whether a move may pay for the kernel, which has had none yet. */
bool choose_has_moves(const Chooser *c, const Plan *plan, const Kernel *kernel);
/* The node that stands for the kernel: its reduction, or what it stores. */
NodeId choose_main_node(const Kernel *kernel);
/* Whether kernels read slices of its product that may be made in its place, which has not been
 * priced yet. */
bool choose_has_slices(const Chooser *c, const Plan *plan, const Kernel *kernel);
/* Whether it is a product that goes on to values for few other kernels, which has not been priced
 * yet. */
bool choose_goes_on(const Chooser *c, const Plan *plan, const Kernel *kernel);
/* Whether a plan of such a part, which is scheduled, may be faster without what the product goes on
 * to: where the dims have their defaults. */
bool choose_may_gain(const Chooser *c, const Part *part, const Plan *plan);
/* False: the source says which kernel some of it is, or wants it in one with something else. */
bool choose_make_part(const Chooser *c, const Plan *plan, const Kernel *kernel, PartKind kind,
                      Part *part);

/* What another part was judged that differs from it in names alone, as layers of a network do;
 * NULL: there is none. */
const Judged *choose_find_same(const Chooser *c, const Part *part);

#endif
