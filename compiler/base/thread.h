/* Threads of a compilation. They take no signals: the host's handlers run on threads of the host.
 */
#ifndef FUSEC_BASE_THREAD_H
#define FUSEC_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread with FUSEC_STACK_BYTES of stack. Returns false if there is none. */
bool thread_start(pthread_t *thread, void *(*work)(void *), void *argument);

#endif
