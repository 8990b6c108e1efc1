/* The runtime's host memory, with a counter and injected failures. Linking fake_mem.o beside
 * libfusert.a replaces the library's own mem.o. Without fake_mem_fail_at it behaves like that. */
#ifndef FAKE_MEM_H
#define FAKE_MEM_H

/* Fail the nth allocation from now on (1 = the next), and all after it if `forever`; 0 = none. */
void fake_mem_fail_at(long n, int forever);

/* Whether an allocation has been made to fail since fake_mem_fail_at. */
int fake_mem_failed(void);

/* Blocks that were allocated and not freed. */
long fake_mem_live(void);

#endif
