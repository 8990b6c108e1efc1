/* The text of one statement in the steps of a loop: where the texts of all steps differ in numbers,
 * the text that stands for all of them has the loop's index. */
#ifndef FUSEC_IR_STEP_TEXT_H
#define FUSEC_IR_STEP_TEXT_H

#include "base/str.h"
#include "ir/steps.h"

/* One text for `n` steps; NULL: there is none. texts[i] is that of step steps[i], or (steps NULL)
 * of step i. Integers that grow by equal amounts become expressions of `index`, others items of a
 * list. Within double quotes, an integer that is the index itself becomes {index}. The result may
 * be one of the texts for a loop around, and prints by step_text_print. */
const char *step_text(Arena *arena, const LoopSteps *loop, const char *index, uint32_t n,
                      const uint32_t *steps, const char *const *texts);
void step_text_print(const char *text, Text *out);
/* The number of the step, from 0 on, as an expression of the index. */
const char *step_number(Arena *arena, const LoopSteps *loop, const char *index);

#endif
