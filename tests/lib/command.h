/* Runs the program build/fusec from the repository's root, in a temporary folder of the test. */
#ifndef TESTS_COMMAND_H
#define TESTS_COMMAND_H

#include <stddef.h>

enum { MAX_ARGS = 16, MAX_TEXT = 1 << 16 };

/* The folder, and the output and the cost of the last run. */
typedef struct Run {
    char folder[64];
    char out[MAX_TEXT], err[MAX_TEXT];
    int status;
    double seconds;  /* of a CPU */
    long memory_kib; /* resident, at most */
} Run;
extern Run run;
/* The text of the program good.g. */
extern const char good[];

/* Create and remove the folder, before and after every test. It holds good.g, with a graph `g` over
 * a dim `B`. */
void command_set_up(void);
void command_tear_down(void);

/* The path of a file in the folder. The last eight results stay valid. */
const char *path_of(const char *name);
void write_file(const char *name, const char *text, size_t n_bytes);
/* Reads at most MAX_TEXT bytes and appends a zero. Returns the number of bytes. */
size_t read_file(const char *path, char *text);
/* The number of files in the folder. */
int n_files(void);

/* Runs build/fusec with the words of `line` (`@name` stands for a file of the folder), and with
 * `input` or nothing as stdin. Returns the exit code. */
int fusec(const char *line, const char *input);
/* Expects this exit code, and the message on stdout, or on stderr after a failure. */
void expect(const char *line, int status, const char *message);

#endif
