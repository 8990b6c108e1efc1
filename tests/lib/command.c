/* See command.h. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#define _DEFAULT_SOURCE   /* wait4 */
#include "lib/command.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

Run run;

static void make_folder(void) {
    snprintf(run.folder, sizeof run.folder, "/tmp/test_cli.XXXXXX");
    cr_assert(mkdtemp(run.folder));
}

const char *path_of(const char *name) {
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", run.folder, name);
    return path;
}

void write_file(const char *name, const char *text, size_t n_bytes) {
    FILE *file = fopen(path_of(name), "wb");
    cr_assert(file && fwrite(text, 1, n_bytes, file) == n_bytes && fclose(file) == 0);
}

size_t read_file(const char *path, char *text) {
    FILE *file = fopen(path, "rb");
    cr_assert(file, "cannot open %s", path);
    size_t n = fread(text, 1, MAX_TEXT - 1, file);
    text[n] = '\0';
    fclose(file);
    return n;
}

int n_files(void) {
    int n = 0;
    DIR *folder = opendir(run.folder);
    cr_assert(folder);
    for (struct dirent *entry; (entry = readdir(folder));) n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

void command_tear_down(void) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s %s.out %s.err", run.folder, run.folder,
             run.folder);
    cr_assert(system(command) == 0);
}

/* Options whose value is a path, not `name=@path`. */
static bool takes_path(const char *word) {
    return strncmp(word, "--dump-to", 9) == 0 || strncmp(word, "--report", 8) == 0 ||
           strncmp(word, "--ptxas", 7) == 0 || strncmp(word, "--weights", 9) == 0;
}

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static int wait_for(pid_t child) {
    int status = -1;
    struct rusage use;
    cr_assert(wait4(child, &status, 0, &use) == child);
    run.seconds = seconds_of(use.ru_utime) + seconds_of(use.ru_stime);
    run.memory_kib = use.ru_maxrss;
    return status;
}

int fusec(const char *line, const char *input) {
    char words[1024], out[96], err[96];
    char program[] = "build/fusec", *args[MAX_ARGS + 1] = {program};
    int n = 1;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word && n < MAX_ARGS; word = strtok(NULL, " ")) {
        char *at = strchr(word, '@');
        bool is_file = at && (at == word || at[-1] == '=');
        char *arg = malloc(512);
        snprintf(arg, 512, "%.*s%s%s", is_file ? (int)(at - word) : 400, word,
                 is_file && at != word && !takes_path(word) ? "@" : "",
                 is_file ? path_of(at + 1) : "");
        args[n++] = arg;
    }
    snprintf(out, sizeof out, "%s.out", run.folder);
    snprintf(err, sizeof err, "%s.err", run.folder);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen(input ? input : "/dev/null", "rb", stdin) || !freopen(out, "wb", stdout) ||
            !freopen(err, "wb", stderr))
            _exit(126);
        execv(args[0], args);
        _exit(127);
    }
    int status = wait_for(child);
    cr_assert(WIFEXITED(status), "fusec %s died of signal %d", line, WTERMSIG(status));
    run.status = WEXITSTATUS(status);
    read_file(out, run.out);
    read_file(err, run.err);
    for (int i = 1; i < n; i++) free(args[i]);
    return run.status;
}

void expect(const char *line, int status, const char *message) {
    cr_expect(fusec(line, NULL) == status, "fusec %s: exit code %d, not %d\n%s", line, run.status,
              status, run.err);
    const char *text = status ? run.err : run.out;
    cr_expect(strstr(text, message), "fusec %s: no `%s` in\n%s", line, message, text);
    cr_expect(!status || !run.out[0], "fusec %s: printed\n%s", line, run.out);
}

const char good[] = "dim B in 1..64\ngraph g(x: f32[B, 8]) -> (y: f32[B, 8]) {\n"
                    "  y = relu(x * 2.0)\n}\n";

void command_set_up(void) {
    make_folder();
    write_file("good.g", good, strlen(good));
}
