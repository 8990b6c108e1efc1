/* The program from outside: runs build/fusec, from the repository's root, in a folder of the test's
 * own. */
#ifndef TESTS_COMMAND_H
#define TESTS_COMMAND_H

#include <stddef.h>

enum { MAX_ARGS = 16, MAX_TEXT = 1 << 16 };

/* The folder, and what the last run said. */
typedef struct Run {
    char folder[64];
    char out[MAX_TEXT], err[MAX_TEXT];
    int status;
} Run;
extern Run run;
/* The text of good.g. */
extern const char good[];

/* Before and after every test: the folder holds good.g, with a graph `g` over a dim `B`. */
void command_set_up(void);
void command_tear_down(void);

/* The path of a file in the folder; eight are kept. */
const char *path_of(const char *name);
void write_file(const char *name, const char *text, size_t n_bytes);
/* At most MAX_TEXT bytes with a zero behind them; how many. */
size_t read_file(const char *path, char *text);
/* In the folder. */
int n_files(void);

/* Runs build/fusec with `line`'s words (`@name` stands for a file of the folder) and stdin from
 * `input`, or from nothing; the exit code. */
int fusec(const char *line, const char *input);
/* That its exit code is this and stdout, or after a failure stderr, has the message. */
void expect(const char *line, int status, const char *message);

#endif
