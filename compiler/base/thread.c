/* See thread.h. */
#include "base/thread.h"

#include <fusec.h>
#include <signal.h>

bool thread_start(pthread_t *thread, void *(*work)(void *), void *argument) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes)) return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool starts = pthread_attr_setstacksize(&attributes, FUSEC_STACK_BYTES) == 0 &&
                  pthread_create(thread, &attributes, work, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return starts;
}
