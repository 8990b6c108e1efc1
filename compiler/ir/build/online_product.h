/* The products of an online softmax in the forms that kernels take. Internal to the builder. */
#ifndef FUSEC_BUILD_ONLINE_PRODUCT_H
#define FUSEC_BUILD_ONLINE_PRODUCT_H

#include "ir/build/build.h"

/* Makes the matmul of scores with these operands. Numbers by which ops of the block scale a whole
 * operand scale the scores instead, which have the dtype of sums until then. A batch axis along
 * which one operand repeats each of its matrices for a group of neighbours becomes two axes, of
 * groups and of neighbours, and that operand has one matrix for each group. A group of single rows,
 * or a whole axis of them, that shares keys is one matrix of these rows. The result has the
 * matmul's shape. */
NodeId online_make_scores(Builder *b, const Node *matmul, NodeId left, NodeId right);
/* Makes build_online's op, whose groups are those of the scores' matmul. */
NodeId online_make_op(Builder *b, OpId op, NodeId scores, NodeId values, NodeId factor,
                      const QuantizeMap *quantize, Dtype dtype);

#endif
