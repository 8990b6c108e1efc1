/* An interpreter of the instructions of tile registers (AMX), for machines that do not have them.
 */
#ifndef FUSEC_TESTS_TOOLS_AMX_H
#define FUSEC_TESTS_TOOLS_AMX_H

#include <stdint.h>

/* From now on a thread that meets such an instruction, which its processor does not know or which
 * its process has no permission for, executes it here and goes on behind it. Each thread has
 * registers of its own. Other illegal instructions end the process, and so do those of threads that
 * block SIGILL, as the runtime's own threads do. */
void amx_interpret(void);
/* The number of instructions that were interpreted. */
uint64_t amx_n_interpreted(void);

#endif
