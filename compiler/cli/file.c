/* Files of the command line. An output appears completely or not at all: it is written to another
 * file in the same folder, which is then renamed. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "base/nearest.h"
#include "base/source.h"
#include "cli/cli.h"

#include <frt_manifest.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__GNUC__)
#define BEFORE_MAIN __attribute__((constructor(101)))
#else
#define BEFORE_MAIN
#endif

/* Temporary files for a signal handler to remove: at most the input and the output of one
 * program. */
enum { MAX_TEMPS = 4, MAX_TEMP_BYTES = 4096 };
static char temps[MAX_TEMPS][MAX_TEMP_BYTES];
static volatile sig_atomic_t n_temps;

static void remove_temps(void) {
    for (int i = 0; i < n_temps; i++) unlink(temps[i]);
}

static void on_signal(int number) {
    remove_temps();
    signal(number, SIG_DFL);
    raise(number);
}

/* LLVM aborts when memory is out. A probe allocation fails then, because the remaining memory is
 * less than LLVM may have asked for. */
static bool is_memory_out(void) {
    enum { PROBE_BYTES = 16 << 20 };
    return mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
           MAP_FAILED;
}

/* Whether main has begun. Before, LLVM's static constructors run: they allocate and do no more, so
 * an abort means that memory is out. */
static volatile sig_atomic_t is_running;

static void on_abort(int number) {
    static const char message[] = "fusec: error: out of memory in LLVM\n"
                                  "  help: `ulimit -v` tells this shell's limit in KiB; a "
                                  "container may have one of its own.\n";
    if (is_running && !is_memory_out()) on_signal(number);
    remove_temps();
    ssize_t n = write(STDERR_FILENO, message, sizeof message - 1);
    _exit(n < 0 ? FUSEC_FILE : FUSEC_MEMORY);
}

void cli_on_fault(const char *why) {
    remove_temps();
    fprintf(stderr,
            "fusec: error: LLVM cannot go on: %s [internal]\n"
            "  help: This is a fault of fusec or of LLVM, please report it with the source.\n",
            why);
    _exit(FUSEC_INTERNAL);
}

/* The message of the time limit, made in advance: a handler may not format text. */
static char late_message[96];
static size_t n_late_bytes;

static void on_time_limit(int number) {
    (void)number;
    remove_temps();
    ssize_t n = write(STDERR_FILENO, late_message, n_late_bytes);
    _exit(n < 0 ? FUSEC_FILE : FUSEC_MEMORY);
}

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};
enum { N_NUMBERS = sizeof numbers / sizeof numbers[0] };

/* Runs before the constructors of LLVM, which have no priority. */
BEFORE_MAIN static void catch_aborts(void) {
    struct sigaction action = {.sa_handler = on_abort};
    sigemptyset(&action.sa_mask);
    sigaction(SIGABRT, &action, NULL);
}

void cli_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_NUMBERS; i++) sigaction(numbers[i], &action, NULL);
    action.sa_handler = on_time_limit;
    sigaction(SIGALRM, &action, NULL);
    catch_aborts();
    is_running = true;
    signal(SIGXFSZ, SIG_IGN); /* then a write past the limit fails, as on a full disk */
}

void cli_limit_time(double seconds) {
    enum { MICROSECONDS = 1000000 };
    int n = snprintf(late_message, sizeof late_message,
                     "fusec: error: the time limit of %.10g second%s has passed\n", seconds,
                     seconds == 1 ? "" : "s");
    n_late_bytes = n > 0 ? (size_t)n : 0;
    time_t whole = (time_t)seconds;
    struct itimerval timer = {
        .it_value = {whole, (suseconds_t)((seconds - (double)whole) * MICROSECONDS)}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* Blocks signals while a file exists that is not yet, or no longer, in the list. */
static sigset_t signals_hold(void) {
    sigset_t held, before;
    sigemptyset(&held);
    for (int i = 0; i < N_NUMBERS; i++) sigaddset(&held, numbers[i]);
    sigprocmask(SIG_BLOCK, &held, &before);
    return before;
}

static void signals_release(const sigset_t *before) {
    int kept = errno;
    sigprocmask(SIG_SETMASK, before, NULL);
    errno = kept;
}

static fusec_status fail_file(const Cli *cli, const char *verb, const char *path) {
    return cli_fail(cli, FUSEC_FILE, "cannot %s %s: %s", verb, path, strerror(errno));
}

bool cli_is_artifact(const char *bytes, size_t n_bytes) {
    static const char *const beginnings[] = {"\177ELF", FRT_MANIFEST_PREFIX};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        size_t n = strlen(beginnings[i]);
        if (n_bytes > n && memcmp(bytes, beginnings[i], n) == 0) return true;
    }
    return false;
}

/* The size limit, which depends on the kind of content. */
static size_t most_bytes(CliRead what, const char *bytes, size_t n_bytes) {
    bool is_source = what == READ_SOURCE || (what == READ_EITHER && n_bytes > strlen("\177ELF") &&
                                             !cli_is_artifact(bytes, n_bytes));
    return is_source ? SOURCE_MAX_BYTES : (size_t)1 << 30;
}

static fusec_status read_all(Cli *cli, int file, const char *path, CliRead what, char **bytes,
                             size_t *n_bytes) {
    size_t capacity = 1 << 16, n = 0;
    char *data = arena_alloc(cli->arena, capacity + 1);
    for (;;) {
        ssize_t got = read(file, data + n, capacity - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_file(cli, "read", path);
        if (got == 0) break;
        n += (size_t)got;
        size_t most = most_bytes(what, data, n);
        if (n > most)
            return cli_fail(cli, most == SOURCE_MAX_BYTES ? FUSEC_INPUT : FUSEC_FILE,
                            "%s has more than %zu MiB, the most that %s may have", path, most >> 20,
                            most == SOURCE_MAX_BYTES ? "a source" : "an artifact");
        if (n < capacity) continue;
        char *grown = arena_alloc(cli->arena, capacity * 2 + 1);
        memcpy(grown, data, n);
        data = grown;
        capacity *= 2;
    }
    *bytes = data;
    *n_bytes = n;
    return FUSEC_OK;
}

/* `name` relative to the folder of `path`. */
static const char *beside(Cli *cli, const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    if (!slash || name[0] == '/') return name;
    return str_format(cli->arena, "%.*s%s", (int)(slash - path) + 1, path, name);
}

/* The file beside `path` with the nearest name, or NULL. Hidden files do not count. */
static const char *nearest_file(Cli *cli, const char *path) {
    const char *slash = strrchr(path, '/');
    Nearest nearest = nearest_to(slash ? slash + 1 : path);
    struct dirent **entries = NULL;
    int n = scandir(beside(cli, path, "."), &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.')
            nearest_try(&nearest, str_format(cli->arena, "%s", entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
    return nearest.best ? beside(cli, path, nearest.best) : NULL;
}

static fusec_status fail_open(Cli *cli, const char *path) {
    bool is_missing = errno == ENOENT;
    fail_file(cli, "open", path);
    const char *nearest = is_missing ? nearest_file(cli, path) : NULL;
    if (nearest) cli_help("Did you mean %s?", nearest);
    return FUSEC_FILE;
}

/* O_NONBLOCK, because opening a pipe would wait for its writer. */
fusec_status cli_open(Cli *cli, const char *path, int *file) {
    *file = STDIN_FILENO;
    if (strcmp(path, "-") == 0) return FUSEC_OK;
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*file < 0) return fail_open(cli, path);
    fcntl(*file, F_SETFL, fcntl(*file, F_GETFL) & ~O_NONBLOCK);
    return FUSEC_OK;
}

fusec_status cli_check_pipe(const Cli *cli, const char *path, int file, size_t n_bytes) {
    struct stat info;
    bool is_pipe = file != STDIN_FILENO && fstat(file, &info) == 0 && S_ISFIFO(info.st_mode);
    if (!is_pipe || n_bytes > 0) return FUSEC_OK;
    return cli_fail(cli, FUSEC_FILE, "%s is a pipe that nothing is written to", path);
}

fusec_status cli_read(Cli *cli, const char *path, CliRead what, char **bytes, size_t *n_bytes) {
    int file;
    fusec_status status = cli_open(cli, path, &file);
    if (status) return status;
    bool is_stdin = file == STDIN_FILENO;
    status = read_all(cli, file, is_stdin ? "stdin" : path, what, bytes, n_bytes);
    if (!status) status = cli_check_pipe(cli, path, file, *n_bytes);
    if (!is_stdin) close(file);
    return status;
}

bool cli_read_include(void *user, const char *path, const char **text, size_t *n_bytes) {
    char *bytes;
    bool can_read = strcmp(path, "-") != 0 && access(path, R_OK) == 0;
    if (!can_read || cli_read(user, path, READ_SOURCE, &bytes, n_bytes)) return false;
    *text = bytes;
    return true;
}

fusec_status cli_check_source(const Cli *cli, const char *bytes, size_t n_bytes) {
    if (cli_is_artifact(bytes, n_bytes))
        return cli_fail(cli, FUSEC_INPUT, "%s is compiled already; this wants the source",
                        cli->path);
    const char *zero = n_bytes ? memchr(bytes, 0, n_bytes) : NULL;
    return zero ? cli_fail(cli, FUSEC_INPUT, "%s is no text: byte %zu is 0", cli->path,
                           (size_t)(zero - bytes))
                : FUSEC_OK;
}

fusec_status cli_read_source(Cli *cli, char **bytes, size_t *n_bytes) {
    if (cli_is_onnx(cli->path))
        return cli_read_onnx(cli, cli_weights_name(cli, cli->path), bytes, n_bytes);
    fusec_status status = cli_read(cli, cli->path, READ_SOURCE, bytes, n_bytes);
    return status ? status : cli_check_source(cli, *bytes, *n_bytes);
}

fusec_status cli_read_model(Cli *cli, char **bytes, size_t *n_bytes) {
    return cli_is_onnx(cli->path) ? cli_read_source(cli, bytes, n_bytes)
                                  : cli_read(cli, cli->path, READ_EITHER, bytes, n_bytes);
}

static bool write_all(int file, const char *bytes, size_t n_bytes) {
    while (n_bytes > 0) {
        ssize_t n = write(file, bytes, n_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

fusec_status cli_close_stdout(const Cli *cli) {
    bool is_lost = ferror(stdout) != 0;
    if (fflush(stdout) || is_lost) return fail_file(cli, "write", "stdout");
    return FUSEC_OK;
}

static fusec_status write_stdout(const Cli *cli, const void *bytes, size_t n_bytes,
                                 bool is_binary) {
    if (is_binary && isatty(STDOUT_FILENO))
        return cli_fail(cli, FUSEC_USAGE,
                        "binary output would go to the terminal; write it to a "
                        "file with -o or redirect it");
    if (fflush(stdout) || !write_all(STDOUT_FILENO, bytes, n_bytes))
        return fail_file(cli, "write", "stdout");
    return FUSEC_OK;
}

/* Opens a new file beside `path`; commit or discard closes it. */
static fusec_status temp_open(const Cli *cli, const char *path, const char *suffix, int *file) {
    if (n_temps == MAX_TEMPS) return cli_fail(cli, FUSEC_INTERNAL, "too many files are open");
    char *name = temps[n_temps];
    int n = snprintf(name, MAX_TEMP_BYTES, "%s.%ld%s.tmp", path, (long)getpid(), suffix);
    if (n >= MAX_TEMP_BYTES)
        return cli_fail(cli, FUSEC_FILE, "cannot write %s: its name is too long", path);
    sigset_t before = signals_hold();
    *file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    n_temps += *file >= 0;
    signals_release(&before);
    return *file >= 0 ? FUSEC_OK : fail_file(cli, "write", path);
}

static void temps_discard(void) {
    int kept = errno;
    remove_temps();
    n_temps = 0;
    errno = kept;
}

/* A device or pipe is written directly, because it cannot be replaced by a rename. */
static bool is_special(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

static fusec_status write_special(const Cli *cli, const char *path, const void *bytes,
                                  size_t n_bytes) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return fail_file(cli, "write", path);
    bool ok = write_all(file, bytes, n_bytes);
    if (close(file) != 0 || !ok) return fail_file(cli, "write", path);
    return FUSEC_OK;
}

/* A symbolic link stays, and the file that it names is replaced or created. */
static const char *follow_links(Cli *cli, const char *path) {
    enum { MAX_LINKS = 40 };
    for (int i = 0; i < MAX_LINKS; i++) {
        char target[MAX_TEMP_BYTES];
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n < 0 || n == (ssize_t)sizeof target - 1) break;
        target[n] = '\0';
        path = beside(cli, path, str_format(cli->arena, "%s", target));
    }
    return path;
}

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool cli_is_same_file(Cli *cli, const char *a, const char *b) {
    struct stat of_a, of_b;
    a = follow_links(cli, a);
    b = follow_links(cli, b);
    bool has_a = stat(a, &of_a) == 0, has_b = stat(b, &of_b) == 0;
    if (has_a && has_b) return is_same(&of_a, &of_b) && S_ISREG(of_a.st_mode);
    const char *a_slash = strrchr(a, '/'), *b_slash = strrchr(b, '/');
    return has_a == has_b && strcmp(a_slash ? a_slash + 1 : a, b_slash ? b_slash + 1 : b) == 0 &&
           stat(beside(cli, a, "."), &of_a) == 0 && stat(beside(cli, b, "."), &of_b) == 0 &&
           is_same(&of_a, &of_b);
}

fusec_status cli_check_place(Cli *cli, const char *path) {
    int file;
    struct stat old;
    if (strcmp(path, "-") == 0 || is_special(path)) return FUSEC_OK;
    path = follow_links(cli, path);
    if (stat(path, &old) == 0 && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return fail_file(cli, "write", path);
    }
    fusec_status status = temp_open(cli, path, "", &file);
    if (!status) close(file);
    temps_discard();
    return status;
}

fusec_status cli_write(Cli *cli, const char *path, const void *bytes, size_t n_bytes,
                       bool is_binary) {
    if (strcmp(path, "-") == 0) return write_stdout(cli, bytes, n_bytes, is_binary);
    if (is_special(path)) return write_special(cli, path, bytes, n_bytes);
    return cli_write_parts(cli, path, 1, &(CliBytes){bytes, n_bytes});
}

fusec_status cli_write_parts(Cli *cli, const char *path, uint32_t n_parts, const CliBytes *parts) {
    path = follow_links(cli, path);
    int file;
    struct stat old;
    fusec_status status = temp_open(cli, path, "", &file);
    if (status) return status;
    bool ok = true;
    for (uint32_t i = 0; i < n_parts && ok; i++)
        ok = write_all(file, parts[i].bytes, parts[i].n_bytes);
    if (ok && stat(path, &old) == 0) ok = fchmod(file, old.st_mode & 07777) == 0;
    ok = close(file) == 0 && ok && rename(temps[n_temps - 1], path) == 0;
    if (ok)
        n_temps--;
    else
        status = fail_file(cli, "write", path);
    temps_discard();
    return status;
}

/* Runs a program and waits for it. The program writes files too, so signals wait until it has
 * ended, and its own process group shields it from the terminal's. */
static int run_program(const char *const *arguments) {
    fflush(stdout);
    sigset_t before = signals_hold();
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        signals_release(&before);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execvp(arguments[0], (char *const *)arguments);
        _exit(errno == ENOENT || errno == EACCES || errno == ENOTDIR ? CLI_NO_TOOL : 126);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    signals_release(&before);
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Creates the two files and puts their names into the arguments. */
static fusec_status run_on_files(Cli *cli, const char *path, const char *const *arguments,
                                 const void *input, size_t n_input, int *exit_code, char **made,
                                 size_t *n_made) {
    enum { MAX_ARGUMENTS = 8 };
    const char *full[MAX_ARGUMENTS] = {NULL};
    int file;
    fusec_status status = temp_open(cli, path, ".in", &file);
    if (status) return status;
    const char *in = temps[n_temps - 1];
    bool ok = write_all(file, input, n_input);
    if (close(file) != 0 || !ok) return fail_file(cli, "write", path);
    status = temp_open(cli, path, ".out", &file);
    if (status) return status;
    close(file);
    const char *out = temps[n_temps - 1];
    for (int i = 0; arguments[i] && i + 1 < MAX_ARGUMENTS; i++)
        full[i] = strcmp(arguments[i], CLI_INPUT) == 0  ? in
                  : strcmp(arguments[i], CLI_MADE) == 0 ? out
                                                        : arguments[i];
    *exit_code = run_program(full);
    return *exit_code ? FUSEC_OK : cli_read(cli, out, READ_ARTIFACT, made, n_made);
}

fusec_status cli_run_tool(Cli *cli, const char *path, const char *const *arguments,
                          const void *input, size_t n_input, int *exit_code, char **made,
                          size_t *n_made) {
    const char *place = strcmp(path, "-") == 0 ? "/tmp/fusec" : path;
    fusec_status status =
        run_on_files(cli, place, arguments, input, n_input, exit_code, made, n_made);
    temps_discard();
    return status;
}
